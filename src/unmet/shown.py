"""The display of objects in notebooks.

The package `views` draws, but it depends on the packages that define the objects, so these cannot import it. Its module
is therefore loaded by name when an object is displayed.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["Shown"]

NOTEBOOKS = "unmet.views.notebooks"
"""The module with `plot_of` and `html_of`."""


class Shown:
    """An object with `.plot()` and a rich display in notebooks."""

    __slots__ = ()

    def plot(self, *args: Any, **options: Any) -> Any:
        """A Plotly figure of the object; see `unmet.views.notebooks` for the options of each class."""
        return import_module(NOTEBOOKS).plot_of(self, *args, **options)

    def _repr_html_(self) -> str:
        return str(import_module(NOTEBOOKS).html_of(self))

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        # scikit-learn estimators define their own bundle, which would hide ours.
        return {"text/plain": repr(self), "text/html": self._repr_html_()}
