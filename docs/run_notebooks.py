"""Execute the notebooks of the documentation and store their outputs: `python docs/run_notebooks.py`.

Needs the extras `docs` and `figures`, and Chromium for the figures, which are stored as images so that no page has to
load a library.
"""

from __future__ import annotations

import os
from pathlib import Path

import nbformat
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).parent / "notebooks"


def main() -> None:
    """Execute all notebooks in their folder."""
    os.environ["PLOTLY_RENDERER"] = "svg"
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(NOTEBOOKS)}}).execute()
        for cell in notebook.cells:
            cell.metadata.pop("execution", None)  # times, which differ from run to run
        nbformat.write(notebook, path)
        print(path)


if __name__ == "__main__":
    main()
