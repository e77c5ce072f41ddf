"""Draw the picture of the README with a headless Chromium: `python docs/picture.py`."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from unmet.city.build import build_city
from unmet.study.censoring import run_censoring
from unmet.views.figures.region_demand import REGION_DEMAND

WIDTH, HEIGHT = 1000, 560
OUT = Path(__file__).parent / "images" / "hidden-demand.png"

study = run_censoring(build_city(), queues=["first-come"], penetrations=[0.05])
figure = REGION_DEMAND.draw(study).update_layout(width=WIDTH, height=HEIGHT)
with tempfile.TemporaryDirectory() as folder:
    page = Path(folder) / "figure.html"
    page.write_text(
        f"<body style='margin:0'>{figure.to_html(full_html=False, config={'displayModeBar': False})}</body>",
        encoding="utf-8",
    )
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--force-device-scale-factor=1.5"]
    flags += [f"--user-data-dir={folder}/profile", f"--window-size={WIDTH},{HEIGHT}", "--virtual-time-budget=15000"]
    subprocess.run(["chromium", *flags, f"--screenshot={OUT}", page.as_uri()], check=True, capture_output=True)  # noqa: S603, S607
print(OUT)
