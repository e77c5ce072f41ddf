"""Parts of other packages, as in docs/extending.md and its guides: registered by entry points or by a call."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
import threading
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from scipy.stats import laplace
from torch.distributions import Laplace as Reference

import unmet.city.build
from tests import command_line
from tests.simulation.cities import small_city
from tests.study.grids import digests_of_runs, small_scene
from unmet.errors import InputError
from unmet.models.backbones import BACKBONES, Inputs, Shape
from unmet.models.likelihoods import LIKELIHOODS, Observation
from unmet.models.likelihoods.quantile import Quantile
from unmet.registry import Registry
from unmet.simulation.queues import QUEUES
from unmet.study.cells import plan_runs
from unmet.study.execute import execute
from unmet.study.parcels import pack
from unmet.study.scenes import Scene
from unmet.study.store import Store

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ("extending.md", "how-to/queue.md", "how-to/backbone.md", "how-to/likelihood.md")
PAGE = "\n".join((DOCS / page).read_text(encoding="utf-8") for page in PAGES)
BLOCKS = dict(re.findall(r"```(?:python|toml)\n# (\S+)\n(.*?)```", PAGE, re.DOTALL))  # by the name of the file
CITY = small_city(1, 60, 120, 12, 2)


def write_package(folder: Path) -> Path:
    """Write the package of the documentation as files that can be imported."""
    for name, code in BLOCKS.items():
        if name.startswith("charging_ideas/"):
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(code, encoding="utf-8")
    return folder


def announce(folder: Path, package: str, groups: dict[str, dict[str, str]]) -> None:
    """Write the metadata of an installed package: its name and its entry points."""
    about = folder / f"{package.replace('-', '_')}-0.1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 0.1\n")
    lines = [f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in named.items()) for group, named in groups.items()]
    (about / "entry_points.txt").write_text("\n".join(lines))


@pytest.fixture
def package(tmp_path, monkeypatch) -> Path:
    """The package of the documentation, importable for one test; it is installed once it is announced."""
    monkeypatch.syspath_prepend(write_package(tmp_path))
    yield tmp_path
    for name in [name for name in sys.modules if name.partition(".")[0] == "charging_ideas"]:
        del sys.modules[name]


def test_studies_can_use_an_installed_package(package, tmp_path, monkeypatch, own_registries):
    project = tomllib.loads(BLOCKS["pyproject.toml"])["project"]
    announce(tmp_path, project["name"], project["entry-points"])
    CITY.trips.write_parquet(tmp_path / "trips.parquet")
    CITY.stations.write_parquet(tmp_path / "stations.parquet")
    command = ["study", "total", "--trips", "trips.parquet", "--stations", "stations.parquet", "--queue", "one-hour",
               "--models", "quantile,laplace", "--backbones", "same-hour", "--runs", "1", "--epochs", "2",
               "--workers", "1", "--out", "study", "--json"]  # fmt: skip
    monkeypatch.chdir(tmp_path)
    done = command_line.unmet(*command)
    assert done.returncode == 0, done.stderr
    cells = json.loads(done.stdout)["cells"]
    found = [(cell["queue"], cell["model"], cell["backbone"]) for cell in cells]
    assert found == [("one-hour", "quantile", "same-hour"), ("one-hour", "laplace", "same-hour")]
    assert "Censored Laplace" in (tmp_path / "study" / "study.html").read_text(encoding="utf-8")


def test_parts_registered_by_a_script_reach_worker_processes(package, tmp_path, monkeypatch, own_registries):
    for name in ("laplace", "one_hour", "same_hour"):
        importlib.import_module(f"charging_ideas.{name}")
    sys.path.remove(str(package))  # no other process can import it
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(unmet.city.build, "build_city", lambda seed=1: replace(CITY, cars=20 * CITY.cars))
    script = {"__name__": "__main__"}
    exec(BLOCKS["try_it.py"], script)  # noqa: S102
    runs, scenes = script["experiment"].runs, script["experiment"].scenes
    assert {(run.model, run.backbone) for run in runs} == {(m, "same-hour") for m in ("quantile", "laplace", "oracle")}
    assert {scene.labels["queue"] for scene in scenes} == {"one-hour"}
    execute(runs, scenes, Store(tmp_path / "alone"), workers=1)
    assert len(digests_of_runs(tmp_path / "alone")) == len(runs)
    assert digests_of_runs(tmp_path / "runs" / "try") == digests_of_runs(tmp_path / "alone")


def test_the_parts_of_the_documentation_do_what_it_says(package):
    from charging_ideas.laplace import Laplace
    from charging_ideas.same_hour import SameHour

    values = torch.arange(400.0)[:, None, None, None].expand(-1, 2, 3, 5)
    backbone = SameHour(Shape(nodes=3, features=5, past_features=1, lags=168), None)
    features = backbone(Inputs(values, torch.zeros(400, 2)))
    assert features.shape == (400 - 168 + 1, 2, 3, backbone.width)
    ahead = torch.arange(168.0, 401.0)[:, None, None]
    assert (features[..., 0] == ahead - 24).all()
    assert (features[..., 1] == ahead - 168).all()

    likelihood = Laplace()
    outputs = torch.randn(50, 2, dtype=torch.float64)
    middle, spread = outputs[:, 0], torch.nn.functional.softplus(outputs[:, 1]) + 1e-3
    reference, y = Reference(middle, spread), torch.randn(50, dtype=torch.float64)
    open_above = torch.full_like(y, torch.inf)
    assert torch.allclose(likelihood.loss(outputs, Observation(y, y, y)), -reference.log_prob(y))
    tail = -laplace.logsf(y.numpy(), middle.numpy(), spread.numpy())
    assert torch.allclose(likelihood.loss(outputs, Observation(y, y, open_above)), torch.from_numpy(tail))
    at_levels = reference.cdf(likelihood.quantiles(outputs).T).T
    assert torch.allclose(at_levels, torch.tensor(likelihood.levels, dtype=torch.float64).expand(50, -1))


@pytest.fixture
def strangers(tmp_path, monkeypatch) -> Registry:
    """A registry with four packages, of which one cannot be imported and one has a part of another name."""
    (tmp_path / "stranger_parts.py").write_text(
        "from types import SimpleNamespace\ngood, other = SimpleNamespace(name='good'), SimpleNamespace(name='other')\n"
    )
    (tmp_path / "stranger_broken.py").write_text("raise ImportError('no module named numpie\\nand more')\n")
    for package, name, target in (
        ("broken-wheels", "broken", "stranger_broken:part"),
        ("good-wheels", "good", "stranger_parts:good"),
        ("odd-wheels", "odd", "stranger_parts:other"),
        ("spare-wheels", "built-in", "stranger_parts:good"),
    ):
        announce(tmp_path, package, {"unmet.wheels": {name: target}})
    monkeypatch.syspath_prepend(tmp_path)
    registry: Registry = Registry("wheel", "unmet.wheels")
    registry.register(type("BuiltIn", (), {"name": "built-in"}))
    yield registry
    sys.modules.pop("stranger_parts", None)


def test_a_package_is_imported_when_its_part_is_requested(strangers):
    assert strangers.named("built-in").__name__ == "BuiltIn"
    assert not strangers.is_installed("built-in")
    assert "stranger_parts" not in sys.modules
    assert strangers.named("good").name == "good"
    assert strangers.is_installed("good")
    mine = strangers.register(type("Mine", (), {"name": "good"}))
    assert strangers.named("good") is mine
    assert not strangers.is_installed("good")


def test_a_broken_package_is_named_and_does_not_affect_others(strangers):
    assert strangers.names() == ("built-in", "good")
    for _ in range(2):
        with pytest.raises(InputError, match=r"broken-wheels .* 'broken' \(ImportError: no module named numpie\)"):
            strangers.named("broken")
        with pytest.raises(InputError, match="odd-wheels provides a wheel as 'odd' whose own name is 'other'"):
            strangers.named("odd")
    with pytest.raises(InputError, match=r"no wheel named 'square': choose one of built-in, good\."):
        strangers.named("square")


def test_the_command_line_imports_neither_plug_ins_nor_networks():
    code = "import sys, unmet.cli; print([n for n in ('torch', 'numba', 'unmet.registry') if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_built_in_parts_are_not_sent_to_workers(own_registries):
    class Mine(Quantile):
        name = "mine"

    scene = small_scene()
    plain = pack(scene, plan_runs([scene], ["quantile", "oracle"], ["linear"], 1, 1))
    LIKELIHOODS.register(Mine)
    assert b"Mine" not in plain
    assert b"Mine" in pack(scene, plan_runs([scene], ["mine"], ["linear"], 1, 1))
    assert pack(scene, plan_runs([scene], ["tobit"], ["tgcn"], 1, 1)) == plain


def test_a_part_that_cannot_be_pickled_is_named(own_registries):
    class Locked(Quantile):
        name = "locked"
        lock = threading.Lock()

    LIKELIHOODS.register(Locked)
    scene: Scene = small_scene()
    with pytest.raises(InputError, match=r"locked cannot be sent to other processes .* --workers 1"):
        pack(scene, plan_runs([scene], ["locked"], ["linear"], 1, 1))


def test_the_documentation_names_all_entry_point_groups():
    groups = set(tomllib.loads(BLOCKS["pyproject.toml"])["project"]["entry-points"])
    assert groups == {BACKBONES.group, LIKELIHOODS.group, QUEUES.group}
