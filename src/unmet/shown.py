"""The display of objects in notebooks.

The room that draws comes after the rooms that define objects. So an object does not import the module that draws it: it
is loaded by name when the object is displayed.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["Shown"]

DRAWS = "unmet.views.notebooks"
"""The module that draws, with `plot_of` and `html_of`."""


class Shown:
    """Something with `.plot()` and a rich display."""

    __slots__ = ()

    def plot(self, *args: Any, **options: Any) -> Any:
        """A Plotly figure of it; see `unmet.views.notebooks` for what each kind of object can show."""
        return import_module(DRAWS).plot_of(self, *args, **options)

    def _repr_html_(self) -> str:
        return str(import_module(DRAWS).html_of(self))

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        # Estimators of scikit-learn have a bundle of their own, which would hide ours.
        return {"text/plain": repr(self), "text/html": self._repr_html_()}
