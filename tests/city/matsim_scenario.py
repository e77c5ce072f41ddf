"""A small made-up MATSim scenario: commuters between two towns, shoppers, and three chargers that are too few."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np

EAST, NORTH = 690_000.0, 5_335_000.0  # EPSG:25832, near Munich
CRS = "EPSG:25832"
SPACING = 1500.0  # m between nodes
SIDE = 6


def write_scenario(folder: Path, people: int = 900, seed: int = 1) -> dict[str, Path]:
    """Write network.xml, plans.xml.gz, events.xml and chargers.xml in MATSim's formats."""
    rng = np.random.default_rng(seed)
    nodes = {f"{i}_{j}": (EAST + SPACING * i, NORTH + SPACING * j) for i in range(SIDE) for j in range(SIDE)}
    links = {}
    for i in range(SIDE):
        for j in range(SIDE):
            for k, m in ((i + 1, j), (i, j + 1)):
                if f"{k}_{m}" in nodes:
                    links[f"{i}_{j}-{k}_{m}"] = (f"{i}_{j}", f"{k}_{m}")
    network = ['<?xml version="1.0"?>', '<network name="made up"><nodes>']
    network += [f'<node id="{name}" x="{x}" y="{y}"/>' for name, (x, y) in nodes.items()]
    network += ["</nodes><links>"]
    network += [
        f'<link id="{name}" from="{a}" to="{b}" length="{SPACING}" freespeed="13.9" capacity="600" permlanes="1" '
        'oneway="1" modes="car"/>'
        for name, (a, b) in links.items()
    ]
    network += ["</links></network>"]
    names = list(links)
    plans = ['<?xml version="1.0"?>', "<population>"]
    events = ['<?xml version="1.0"?>', '<events version="1.0">']
    for number in range(people):
        home, work = rng.uniform(0, SPACING * (SIDE - 1), 2), rng.uniform(0, SPACING * (SIDE - 1), 2)
        leaves, back = 25_200 + 3600 * rng.random(), 57_600 + 7200 * rng.random()
        far = 1.4 * float(np.hypot(*(home - work))) + 20_000  # a detour, so that batteries run low
        took = far / 14
        corner = np.array([EAST, NORTH])
        (hx, hy), (wx, wy) = home + corner, work + corner
        mode = "car" if rng.random() < 0.9 else "pt"
        leg = f'<leg mode="{mode}" dep_time="{{}}" trav_time="{_clock(took)}"><route distance="{far:.1f}"/></leg>'
        plans += [
            f'<person id="p{number}"><plan selected="no"><activity type="home" x="0" y="0"/></plan>',
            '<plan selected="yes">',
            f'<activity type="home" link="{names[0]}" x="{hx:.1f}" y="{hy:.1f}" end_time="{_clock(leaves)}"/>',
            leg.format(_clock(leaves)),
            f'<activity type="work" link="{names[1]}" x="{wx:.1f}" y="{wy:.1f}" end_time="{_clock(back)}"/>',
            leg.format(_clock(back)),
            f'<activity type="home" link="{names[0]}" x="{hx:.1f}" y="{hy:.1f}"/>',
            "</plan></person>",
        ]
        link = names[int(rng.integers(len(names)))]
        events += [
            f'<event time="{leaves:.1f}" type="departure" person="p{number}" link="{link}" legMode="{mode}"/>',
            f'<event time="{leaves:.1f}" type="vehicle enters traffic" person="p{number}" vehicle="v{number}"/>',
            f'<event time="{leaves + 60:.1f}" type="entered link" link="{names[2]}" vehicle="v{number}"/>',
            f'<event time="{leaves + took:.1f}" type="arrival" person="p{number}" link="{names[2]}" legMode="{mode}"/>',
        ]
    plans += ["</population>"]
    events += ["</events>"]
    chargers = ['<?xml version="1.0"?>', "<chargers>"]
    for k, link in enumerate(names[3 : 3 + 12 : 4]):
        chargers += [f'<charger id="c{k}" type="default" link="{link}" plug_power="22.0" plug_count="6"/>']
    chargers += ["</chargers>"]
    files = {name: folder / f"{name}.xml" for name in ("network", "events", "chargers")}
    files["plans"] = folder / "plans.xml.gz"
    files["network"].write_text("\n".join(network), encoding="utf-8")
    files["plans"].write_bytes(gzip.compress("\n".join(plans).encode()))
    files["events"].write_text("\n".join(events), encoding="utf-8")
    files["chargers"].write_text("\n".join(chargers), encoding="utf-8")
    return files


def _clock(seconds: float) -> str:
    whole = round(seconds)
    return f"{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}"
