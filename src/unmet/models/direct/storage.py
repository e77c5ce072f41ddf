"""Direct forecasters on disk: `model.json`, `arrays.safetensors`, and the trees as LightGBM's own text."""

from __future__ import annotations

import datetime as dt
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from unmet import __version__
from unmet.models.direct.engine import Engine
from unmet.models.direct.forecaster import MEMBERS, DirectForecaster
from unmet.models.direct.member import Member
from unmet.models.forecaster import Split
from unmet.runs import write_json

__all__ = ["read_direct", "write_direct"]


def write_direct(forecaster: DirectForecaster, folder: Path, format_number: int) -> None:
    """Write a fitted forecaster into an existing folder."""
    engine, options = forecaster.engine_, forecaster.get_params()
    write_json(
        folder / "model.json",
        {
            "format": format_number,
            "kind": "direct",
            "unmet": __version__,
            "options": options
            | {name: list(options[name]) for name in ("levels", "features", "shares")}
            | {"time_zone": forecaster.time_zone_, "country": forecaster.country_},
            "regions": list(forecaster.regions_),
            "positions": None if forecaster.positions_ is None else forecaster.positions_.tolist(),
            "split": {name: value.isoformat() for name, value in asdict(forecaster.split_).items()},
            "tables": list(engine.tables),
            "members": [member.name for member in engine.members],
            "notes": list(forecaster.notes_),
            "quietness": forecaster.quietness_,
        },
    )
    arrays = {
        "weights": engine.weights,
        "past": engine.past.astype(np.float32),
        "session_kwh": engine.session_kwh,
        "scale": forecaster.scale_,
        "extra_mean": forecaster.extra_mean_,
        "extra_spread": forecaster.extra_spread_,
    }
    for member in engine.members:
        for name, value in member.state().items():
            if isinstance(value, str):
                (folder / f"{member.name}-{name}.txt").write_text(value, encoding="utf-8")
            else:
                arrays[f"{member.name}/{name}"] = value
    save_file({name: np.ascontiguousarray(value) for name, value in arrays.items()}, folder / "arrays.safetensors")
    (folder / "arrays.safetensors").chmod(0o644)  # safetensors writes files that only their owner can read


def read_direct(stored: dict[str, Any], folder: Path) -> DirectForecaster:
    """Read a fitted forecaster from the files that `write_direct` wrote."""
    try:
        arrays = load_file(folder / "arrays.safetensors")
    except SafetensorError as error:
        raise ValueError(str(error)) from None
    options = stored["options"]
    forecaster = DirectForecaster(**options | {name: tuple(options[name]) for name in ("levels", "features", "shares")})
    forecaster.time_zone_, forecaster.country_ = options["time_zone"], options.get("country")
    forecaster.regions_ = tuple(stored["regions"])
    forecaster.positions_ = None if stored["positions"] is None else np.array(stored["positions"])
    forecaster.split_ = Split(**{name: dt.datetime.fromisoformat(time) for name, time in stored["split"].items()})
    forecaster.notes_ = tuple(stored["notes"])
    forecaster.quietness_ = dict(stored.get("quietness", stored.get("sunday_shares", {})))  # name in older models
    forecaster.scale_ = arrays["scale"]
    forecaster.extra_mean_, forecaster.extra_spread_ = arrays["extra_mean"], arrays["extra_spread"]
    members = tuple(_member(name, arrays, folder) for name in stored["members"])
    past = arrays["past"].astype(np.float64)
    forecaster.engine_ = Engine(
        tuple(stored["tables"]), members, arrays["weights"], past, forecaster.horizon, arrays["session_kwh"]
    )
    return forecaster


def _member(name: str, arrays: dict[str, Any], folder: Path) -> Member:
    member = MEMBERS[name]()
    state: dict[str, Any] = {
        key.partition("/")[2]: value for key, value in arrays.items() if key.startswith(f"{name}/")
    }
    for path in folder.glob(f"{name}-*.txt"):
        state[path.stem.removeprefix(f"{name}-")] = path.read_text(encoding="utf-8")
    member.restore(state)
    return member
