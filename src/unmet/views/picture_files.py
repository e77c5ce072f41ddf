"""Figures as files for slides and papers: PNG and SVG."""

from __future__ import annotations

from pathlib import Path

from unmet.errors import InputError
from unmet.views.figures.base import Figure

__all__ = ["write_pictures"]

WIDTH, SCALE = 1000, 2  # width [px], and pixels of a PNG per px


def write_pictures(figures: list[tuple[Figure, object]], folder: Path) -> list[str]:
    """Write every figure as PNG and SVG, named as on the page and without menus, and return the paths.

    Kaleido draws them with an installed Chromium or Chrome; nothing is downloaded.
    """
    import plotly.io as pio

    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file: name a folder with --figures.")
    drawn = [(figure.name, figure.draw(result)) for figure, result in figures]
    for _, picture in drawn:
        picture.layout.updatemenus = ()
    pairs = [(picture, folder / f"{name}.{form}") for name, picture in drawn for form in ("png", "svg")]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        pio.write_images(
            [picture for picture, _ in pairs],
            [str(path) for _, path in pairs],
            scale=SCALE,
            width=WIDTH,
            height=[picture.layout.height for picture, _ in pairs],
            validate=False,
        )
    except OSError as error:
        raise InputError(f"Cannot write to {folder}: {error.strerror or error}. Name another folder.") from None
    except Exception as error:
        # Kaleido raises its own errors, and those of the browser and the event loop.
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise InputError(
            f"Figures cannot be drawn ({reason}): install kaleido (pip install 'unmet[figures]') and Chromium or "
            "Chrome, or save them from the report with a browser."
        ) from None
    return [str(path) for _, path in pairs]
