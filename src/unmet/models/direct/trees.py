"""Gradient-boosted trees on the features of the regression, by LightGBM; an extra: `pip install 'unmet[trees]'`."""

from __future__ import annotations

import warnings
from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np

from unmet.arrays import Floats
from unmet.extras import needs_extra
from unmet.models.direct.member import Member, Rows

__all__ = ["Trees"]


TREES, LEAVES, RATE, MIN_ROWS = 120, 15, 0.06, 100  # number of trees, leaves of each, learning rate, rows per leaf


class Trees(Member):
    """log E(y / scale) as a sum of small trees, by Poisson deviance; one model for all regions and horizons."""

    name: ClassVar[str] = "lightgbm"
    title: ClassVar[str] = "Gradient-boosted trees"

    def __init__(self) -> None:
        self.booster: Any = None

    @classmethod
    def is_installed(cls) -> bool:
        """Whether LightGBM is installed."""
        return find_spec("lightgbm") is not None

    def fit(self, rows: Rows, covariates: int, seed: int, threads: int) -> None:
        """Boost trees; the same seed gives the same trees, whatever the number of threads."""
        lightgbm = _lightgbm()
        options = {
            "objective": "poisson", "num_leaves": LEAVES, "learning_rate": RATE, "min_data_in_leaf": MIN_ROWS,
            "feature_fraction": 0.7, "bagging_fraction": 0.7, "bagging_freq": 1, "max_bin": 127, "seed": seed,
            "deterministic": True, "force_row_wise": True, "num_threads": threads, "verbose": -1,
        }  # fmt: skip
        data = lightgbm.Dataset(
            rows.features.astype(np.float32), rows.ratio, weight=rows.weight, params={"verbose": -1}
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # users cannot act on LightGBM's warnings
            self.booster = lightgbm.train(options, data, TREES)

    def predict(self, features: Floats, band: int, covariates: int) -> Floats:
        """Expected demand divided by scale, (...), of rows (..., features)."""
        flat = features.reshape(-1, features.shape[-1]).astype(np.float32)
        return np.asarray(self.booster.predict(flat, num_threads=1)).reshape(features.shape[:-1])

    def state(self) -> dict[str, Any]:
        """The trees in LightGBM's own text format."""
        return {"trees": self.booster.model_to_string()}

    def restore(self, state: dict[str, Any]) -> None:
        """Set the trees that `state` returned."""
        self.booster = _lightgbm().Booster(model_str=state["trees"])


def _lightgbm() -> Any:
    try:
        import lightgbm
    except ImportError as error:
        raise needs_extra("A model with gradient-boosted trees", error) from None
    return lightgbm
