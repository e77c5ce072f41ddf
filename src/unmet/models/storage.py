"""Models on disk: JSON, arrays as safetensors, trees as text; nothing is pickled."""

from __future__ import annotations

from pathlib import Path

from unmet.errors import InputError
from unmet.extras import needs_extra
from unmet.files import read_json
from unmet.models.forecaster import Forecaster
from unmet.models.model_file import check_model_file

__all__ = ["FORMAT", "load_model", "write_model"]

FORMAT = 5  # version of the files; older versions can be read, unless they contain an estimate of lost demand
DIRECT_KIND = "direct"


def write_model(forecaster: Forecaster, folder: Path) -> None:
    """Write a fitted forecaster into an existing folder."""
    from unmet.models.direct.forecaster import DirectForecaster

    forecaster.check_fitted()
    if isinstance(forecaster, DirectForecaster):
        from unmet.models.direct.storage import write_direct

        write_direct(forecaster, folder, FORMAT)
        return
    from unmet.models.network_storage import write_network

    write_network(forecaster, folder, FORMAT)


def load_model(folder: Path) -> Forecaster:
    """Read a fitted forecaster from the folder of its model, or from a run folder that has it in `model/`."""
    folder = folder / "model" if (folder / "model" / "model.json").is_file() else folder
    if not (folder / "model.json").is_file():
        raise InputError(f"There is no model at {folder}: give a folder that `unmet fit` wrote.")
    try:
        stored = read_json(folder / "model.json")
        if stored["format"] > FORMAT:
            raise InputError(f"The model at {folder} was written by unmet {stored['unmet']}: install that version.")
        if stored["format"] < 4 and stored.get("unseen"):
            raise InputError(
                f"The model at {folder} was written by unmet {stored['unmet']}, which estimated lost demand in another "
                "way: make the panel with `unmet panel`, and fit the model again with `unmet fit`."
            )
        check_model_file(stored)
        if stored.get("kind") == DIRECT_KIND:
            from unmet.models.direct.storage import read_direct

            return read_direct(stored, folder)
        from unmet.models.network_storage import read_network

        return read_network(stored, folder)
    except InputError:
        raise
    except ModuleNotFoundError as error:
        raise needs_extra(f"The model at {folder} is a network, which", error) from None
    except (OSError, AttributeError, KeyError, TypeError, ValueError, RuntimeError, IndexError) as error:
        reason = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise InputError(f"The model at {folder} is damaged ({reason}): fit it again.") from None
