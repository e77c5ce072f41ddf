"""The panel as one would write it with pandas: events, cumulative sums, group-bys."""

from __future__ import annotations

import numpy as np
import pandas as pd


def pandas_panel(sessions: pd.DataFrame, plugs: dict[str, int]) -> tuple[pd.Series, pd.Series]:
    """Energy by station and hour of arrival, and the hours for which no plug was free, by station and hour."""
    hour = sessions["start"].dt.floor("h")
    energy = sessions.groupby([sessions["station_id"], hour])["energy_kwh"].sum()
    full = []
    for station, own in sessions.groupby("station_id"):
        events = pd.concat([pd.Series(1, index=own["start"]), pd.Series(-1, index=own["end"])]).to_frame("step")
        # at equal times, departures come first
        events = events.rename_axis("time").reset_index().sort_values(["time", "step"])
        events["cars"] = events["step"].cumsum()
        events["until"] = events["time"].shift(-1)
        busy = events[(events["cars"] >= plugs[str(station)]) & (events["until"] > events["time"])]
        for begin, until in zip(busy["time"], busy["until"], strict=True):
            for slot in pd.date_range(begin.floor("h"), until, freq="h", inclusive="left"):
                part = min(until, slot + pd.Timedelta(hours=1)) - max(begin, slot)
                full.append((station, slot, part / pd.Timedelta(hours=1)))
    table = pd.DataFrame(full, columns=["station_id", "ds", "full"])
    return energy, table.groupby(["station_id", "ds"])["full"].sum()


def random_sessions(sessions: int, stations: int, plugs: int, seed: int = 1) -> pd.DataFrame:
    """About a year of random sessions, sorted by start: one car after another at each plug, with pauses between."""
    rng = np.random.default_rng(seed)
    each = sessions // (stations * plugs)  # sessions per plug
    # Stays take 4 hours on average, and pauses what is left of the year, divided by the number of sessions.
    stay = rng.gamma(2.0, 7200.0, (stations * plugs, each)).astype(np.int64) + 60
    pause = rng.gamma(0.5, 2 * (365 * 86_400 / each - 14_400), stay.shape).astype(np.int64)
    end = np.cumsum(stay + pause, axis=1) + 1_546_300_800  # 2019-01-01, UTC
    station = np.repeat(np.arange(stations * plugs) // plugs, each)
    order = np.argsort((end - stay).ravel(), kind="stable")
    start, end, station = (end - stay).ravel()[order], end.ravel()[order], station[order]
    return pd.DataFrame(
        {
            "session_id": np.arange(len(start)).astype(str),
            "station_id": np.char.add("s", station.astype(str)),
            "start": pd.to_datetime(start, unit="s", utc=True),
            "end": pd.to_datetime(end, unit="s", utc=True),
            "energy_kwh": rng.gamma(2.0, 8.0, len(start)),
        }
    )
