"""Notes: what a user should know about the panel that a model was fitted on."""

from __future__ import annotations

import numpy as np

from unmet.models.likelihoods.base import Likelihood
from unmet.models.series import HOUR, PanelSeries
from unmet.models.series_notes import missing_hours_notes, set_aside_notes

__all__ = ["panel_notes"]

IMPLAUSIBLE = 30  # ratio of an hour to the 99th percentile of its region from which it is reported


def panel_notes(
    series: PanelSeries, likelihood: Likelihood, train_hours: int, fit_hours: int, horizon: int
) -> tuple[str, ...]:
    """Sentences on rows set aside, missing hours, implausible values, silent regions, censoring and horizons."""
    notes = set_aside_notes(series)
    demand = series.demand[:train_hours]
    notes += missing_hours_notes(series)
    silent = [name for name, part in zip(series.names, demand.T, strict=True) if not np.nansum(part) > 0]
    if silent:
        notes.append(f"No demand was observed in {', '.join(silent[:5])} to learn from: do not trust forecasts there.")
    notes += _implausible_peaks(series, train_hours)
    held_out = fit_hours - train_hours
    if horizon > held_out:
        notes.append(
            f"{held_out} hours were held out: forecasts further ahead are calibrated like those {held_out} hours "
            "ahead, and their accuracy is not known."
        )
    censored = (series.lower != series.upper)[:train_hours] & np.isfinite(demand)
    if censored.any():
        always = [
            name
            for i, name in enumerate(series.names)
            if censored[:, i].sum() == np.isfinite(demand[:, i]).sum() and name not in silent
        ]
        if not (likelihood.aware or likelihood.imputes):
            notes.append(
                f"{100 * censored.mean():.1f} % of the hours are censored, which the {likelihood.title.lower()} "
                "likelihood ignores."
            )
        elif always and not likelihood.imputes:
            notes.append(
                f"Every hour of {', '.join(always[:5])} is censored: the records only give a lower bound on demand."
            )
    return tuple(notes)


def _implausible_peaks(series: PanelSeries, train_hours: int) -> list[str]:
    """A warning if one hour of a region dwarfs all others, because demand is scaled by the largest hour."""
    notes = []
    for i, name in enumerate(series.names):
        demand = np.where(np.isfinite(series.demand[:train_hours, i]), series.demand[:train_hours, i], 0.0)
        peak, usual = float(demand.max(initial=0.0)), float(np.quantile(demand, 0.99)) if len(demand) else 0.0
        if peak > IMPLAUSIBLE * usual > 0:
            when = series.first + int(demand.argmax()) * HOUR
            notes.append(
                f"{peak:,.0f} kWh in {name} at {when:%Y-%m-%d %H:%M} UTC is {peak / usual:,.0f} times the 99th "
                "percentile of its hours: check it, since demand is scaled by the largest hour."
            )
    return notes[:5]
