"""Run all benchmarks, print what they found, and keep it in docs/benchmarks.md."""

from __future__ import annotations

import sys

from benchmarks import panel, simulation, training
from benchmarks.report import PAGE, write_page

BENCHMARKS = (simulation, panel, training)

sections = []
for benchmark in BENCHMARKS:
    print(benchmark.TITLE)
    results = benchmark.run()
    for result in results:
        verdict = "kept" if result.kept else "BROKEN"
        print(f"  {result.what}: {result.measured} (promised: {result.promised}; {verdict})")
    sections.append((benchmark.TITLE, benchmark.TEXT, results))
write_page(sections)
print(f"Written to {PAGE}")
sys.exit(not all(result.kept for _, _, results in sections for result in results))
