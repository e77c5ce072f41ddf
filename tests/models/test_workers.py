"""Workers of a fit end with it, even if it is killed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import psutil

ROOT = Path(__file__).parents[2]
KILLED = """
import json, os, signal
import psutil
from tests.models.panels import quick, small_panel

def kill_me(trainings):
    if all(training.epoch for training in trainings):  # both are at work
        children = [child.pid for child in psutil.Process().children(recursive=True)]
        print(json.dumps(children), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)

quick("linear", epochs=10**9, seeds=2, workers=2).fit(small_panel(), on_progress=kill_me)
"""


def test_workers_end_after_the_fit_was_killed():
    with subprocess.Popen([sys.executable, "-c", KILLED], cwd=ROOT, stdout=subprocess.PIPE, text=True) as fit:
        said = fit.stdout.readline() if fit.stdout else ""
    workers = json.loads(said)
    assert len(workers) >= 2
    still = [psutil.Process(pid) for pid in workers if psutil.pid_exists(pid)]
    left = [process for process in psutil.wait_procs(still, timeout=300)[1] if process.is_running()]
    for process in left:
        process.kill()
    assert not left, "workers outlive the fit"
