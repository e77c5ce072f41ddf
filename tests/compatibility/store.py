"""Store small examples of the files of this version: run `python -m tests.compatibility.store` for each release."""

from __future__ import annotations

from pathlib import Path

from tests.models.panels import POSITIONS, capped, quick, small_panel
from tests.small_network import STATIONS, records
from unmet import __version__
from unmet.demand.panel import Panel
from unmet.demand.stored import save_panel
from unmet.estimation.lost_demand import LostDemand
from unmet.models.forecaster import Forecaster
from unmet.runs import run_folder
from unmet.simulation.scenario import Scenario
from unmet.views.lost_report import LostReport
from unmet.views.recovery import write_recovery

HERE = Path(__file__).parent


def main() -> None:
    """Store a panel, lost demand, models of both kinds with their forecasts, and a scenario."""
    folder = HERE / __version__
    panel = Panel(records(14)[0], STATIONS, regions=2, time_zone="Europe/Copenhagen")
    save_panel(panel, folder / "panel")
    with run_folder(folder / "lost") as run:
        write_recovery(LostReport.of(LostDemand(draws=20).fit(panel)), None, None, run)
        (run / "recovery.html").unlink()  # large, and not read by any command
    history = capped(small_panel(), 8).drop("truth")
    network = quick("linear", epochs=1).fit(history, POSITIONS)
    network.save(folder / "model")
    stacked = Forecaster("stacked", "quantile", horizon=24).fit(history, POSITIONS)
    stacked.save(folder / "stacked")
    with run_folder(folder / "run") as run:
        (run / "scenario.yaml").write_text(Scenario(queue="gas-station", seed=3).to_yaml(), encoding="utf-8")
        history.write_parquet(run / "panel.parquet")
        network.forecast(history).table.write_parquet(run / "forecast.parquet")
        stacked.forecast(history).table.write_parquet(run / "stacked.parquet")


if __name__ == "__main__":
    main()
