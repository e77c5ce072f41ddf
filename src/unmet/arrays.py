"""Types of the arrays that functions take and return."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["Booleans", "Floats", "Integers"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]
