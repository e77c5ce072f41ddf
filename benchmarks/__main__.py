"""Run benchmarks, print their results, and write them to docs/benchmarks.md.

`python -m benchmarks` runs all; `python -m benchmarks training` runs one and leaves the other sections unchanged.
"""

from __future__ import annotations

import sys

from benchmarks import app, default_fit, panel, planning, records, simulation, training
from benchmarks.report import PAGE, Section, read_sections, write_page

BENCHMARKS = {
    "simulation": simulation,
    "records": records,
    "panel": panel,
    "training": training,
    "default_fit": default_fit,
    "planning": planning,
    "app": app,
}

chosen = sys.argv[1:] or list(BENCHMARKS)
if unknown := [name for name in chosen if name not in BENCHMARKS]:
    sys.exit(f"There is no benchmark {unknown[0]}: choose among {', '.join(BENCHMARKS)}.")
sections, all_met = read_sections(), True
for name in chosen:
    benchmark = BENCHMARKS[name]
    print(benchmark.TITLE)
    results = benchmark.run()
    for result in results:
        verdict = "met" if result.kept else "MISSED"
        print(f"  {result.what}: {result.measured} (target: {result.promised}; {verdict})")
    sections[benchmark.TITLE] = Section(benchmark.TEXT, results).lines()
    all_met &= all(result.kept for result in results)
write_page([(benchmark.TITLE, sections.get(benchmark.TITLE, [])) for benchmark in BENCHMARKS.values()])
print(f"Written to {PAGE}")
sys.exit(not all_met)
