"""Store small examples of what this version writes: `python -m tests.compatibility.store`, once for each release."""

from __future__ import annotations

from pathlib import Path

from tests.models.panels import POSITIONS, capped, quick, small_panel
from tests.small_network import STATIONS, records
from unmet import __version__
from unmet.demand.panel import build_panel
from unmet.demand.stored import save_panel
from unmet.runs import run_folder
from unmet.simulation.scenario import Scenario

HERE = Path(__file__).parent


def main() -> None:
    """A panel, a model with a forecast of its own, and a scenario."""
    folder = HERE / __version__
    save_panel(build_panel(records(14)[0], STATIONS, regions=2, time_zone="Europe/Copenhagen"), folder / "panel")
    history = capped(small_panel(), 8).drop("truth")
    fitted = quick("linear", epochs=1).fit(history, POSITIONS)
    fitted.save(folder / "model")
    with run_folder(folder / "run") as run:
        (run / "scenario.yaml").write_text(Scenario(queue="gas-station", seed=3).to_yaml(), encoding="utf-8")
        history.write_parquet(run / "panel.parquet")
        fitted.forecast(history).write_parquet(run / "forecast.parquet")


if __name__ == "__main__":
    main()
