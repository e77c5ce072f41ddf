"""Networks on disk: weights as safetensors, everything else as JSON; nothing is pickled."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from unmet import __version__
from unmet.errors import printable, shortened
from unmet.models.calibration import Calibration
from unmet.models.encoding import Encoding
from unmet.models.forecaster import Split
from unmet.models.network_forecaster import NetworkForecaster
from unmet.models.training import Training
from unmet.runs import write_json

__all__ = ["read_network", "write_network"]


def write_network(forecaster: Any, folder: Path, format_number: int) -> None:
    """Write a fitted forecaster into an existing folder: `model.json` and `weights.safetensors`."""
    options = forecaster.get_params()
    encoding = {name: _plain(value) for name, value in asdict(forecaster.encoding_).items()}
    write_json(
        folder / "model.json",
        {
            "format": format_number,
            "unmet": __version__,
            "options": options
            | {
                "training": asdict(options["training"]),
                "levels": list(options["levels"]),
                "features": list(options["features"]),
                "shares": list(options["shares"]),
                "time_zone": forecaster.time_zone_,
            },
            "regions": list(forecaster.regions_),
            "positions": _plain(forecaster.positions_),
            "seeds": list(forecaster.seeds_),
            "split": {name: value.isoformat() for name, value in asdict(forecaster.split_).items()},
            "encoding": encoding,
            "calibration": _plain(forecaster.calibration_.moves),
            "losses": forecaster.losses_,
            "finished": forecaster.finished_,
            "notes": list(forecaster.notes_),
        },
    )
    weights = {
        f"seed-{seed}/{name}": value.cpu().contiguous()
        for seed, network in zip(forecaster.seeds_, forecaster.networks_, strict=True)
        for name, value in network.state_dict().items()
    }
    save_file(weights, folder / "weights.safetensors")
    (folder / "weights.safetensors").chmod(0o644)  # safetensors writes files that only their owner can read


def read_network(stored: dict[str, Any], folder: Path) -> NetworkForecaster:
    """Read a fitted forecaster from the files that `write_network` wrote."""
    try:
        weights = load_file(folder / "weights.safetensors")
    except SafetensorError as error:
        raise ValueError(str(error)) from None
    _check_weights(weights)
    return _forecaster(stored, weights)


def _forecaster(stored: dict[str, Any], weights: dict[str, Any]) -> NetworkForecaster:
    options = stored["options"]
    forecaster = NetworkForecaster(
        **options
        | {
            "training": Training(**options["training"]),
            "levels": tuple(options["levels"]),
            "features": tuple(options["features"]),
            "shares": tuple(options["shares"]),
        }
    )
    forecaster.time_zone_ = options["time_zone"]
    forecaster.regions_ = tuple(stored["regions"])
    forecaster.positions_ = None if stored["positions"] is None else np.array(stored["positions"])
    forecaster.seeds_ = tuple(stored["seeds"])
    forecaster.split_ = Split(**{name: dt.datetime.fromisoformat(time) for name, time in stored["split"].items()})
    encoding: dict[str, Any] = {
        name: np.array(value) if isinstance(value, list) else value for name, value in stored["encoding"].items()
    }
    forecaster.encoding_ = Encoding(**encoding)
    forecaster.calibration_ = Calibration(np.array(stored["calibration"]))
    forecaster.losses_ = [[(loss, held_out) for loss, held_out in losses] for losses in stored["losses"]]
    forecaster.finished_ = stored["finished"]
    forecaster.notes_ = tuple(stored["notes"])
    forecaster.set_weights(
        [
            {key.partition("/")[2]: value for key, value in weights.items() if key.startswith(f"seed-{seed}/")}
            for seed in forecaster.seeds_
        ]
    )
    return forecaster


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else value


def _check_weights(weights: Mapping[str, torch.Tensor]) -> None:
    """Refuse weights that are not finite, since no forecast would be finite either.

    Raises:
        ValueError: naming the first such tensor.
    """
    for name, value in weights.items():
        if not torch.isfinite(value).all():
            raise ValueError(f"{shortened(printable(name))} of weights.safetensors is not finite")
