"""Whether 03/04/2018 is in March or April: the order of day and month that the rows themselves support.

A date whose day is above 12 settles its own order. The others are ambiguous, and files mix orders: by file, by block of
rows, or because a spreadsheet rewrote dates that fitted its locale. So the order of ambiguous dates may differ by
written form (`03/04/2018`, `03.04.18`) and may change between rows, at a cost. The path of least cost is found by
the Viterbi algorithm. Costs are assigned to:

- an end before its start, or a long stay;
- a start far from that of the row before, in a file sorted by time;
- a change of order between two rows;
- an order that disagrees with the settled dates of the same form, or with what the format suggests.

If settled dates show that orders follow no such pattern, each row is read on its own (see `row_orders`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unmet.arrays import Integers
from unmet.compiled import compiled
from unmet.records.evidence import Finding
from unmet.records.row_orders import follow_no_pattern, row_by_row

__all__ = ["DayOrders", "find_day_orders"]

# Costs are negative log-likelihoods, in nats.
IMPOSSIBLE = 8.0  # an end before the start, or more than 31 days after it
CHANGE = 12.0  # two changes outweigh two impossible rows: a block of another order has three rows or more
AGAINST_SETTLED = 6.0  # an order that contradicts all settled dates of its form; less if it contradicts only some
AGAINST_FORMAT = 2.0  # an order other than the one that the format suggests
OPEN = 3.0  # if the costs of two orders differ by less, both are possible
MAX_FORMS = 3  # 2**forms states are compared; rarer forms have the order of the most frequent one
_NO_DAY = -(2**31) + 1  # stands for a date that does not exist
_PARTS = r"^\s*(\d{1,2})([/.\-])(\d{1,2})[/.\-](\d{4}|\d{2})(?:\D|$)"

# Columns: the day read with the day first, the day read with the month first [days since 1970], and the form.
Days = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class DayOrders:
    """The order of day and month in each cell of some columns."""

    columns: list[pl.Series]  # Boolean: whether the day comes first; null where a cell is no such date
    evidence: Finding | None  # the decision and its evidence
    note: str | None  # a sentence for the user, if the order is ambiguous or mixed
    open_rows: pl.Series | None = None  # Boolean: rows whose order is undecided, if orders follow no pattern


def find_day_orders(columns: Sequence[pl.Series], suggested: bool | None = None) -> DayOrders:
    """The orders of day and month in the cells of a start and an end column (and further ones).

    Args:
        columns: texts in the order of the file, starts first, then ends; null where a cell is read already.
        suggested: whether the format says that days come first.
    """
    # The first 12 characters contain the date; as categories, each distinct date is parsed only once.
    tokens = [column.str.slice(0, 12).cast(pl.Categorical) for column in columns]
    dates = [_Dates.of(column) for column in tokens]
    forms = _forms(dates)
    if not forms:
        nothing = [pl.Series([None], dtype=pl.Boolean).new_from_index(0, len(column)) for column in columns]
        return DayOrders(nothing, None, None)
    start_and_end = [date.numbered(forms) for date in dates[:2]]
    if len(start_and_end) < 2:
        start_and_end.append(np.full((len(columns[0]), 3), _NO_DAY, dtype=np.int32))
    settled = _settled(dates, forms)
    prior = _prior(settled, suggested, len(forms))
    path, uniform = _decide(start_and_end[0], start_and_end[1], prior, len(forms))
    state = path if path is not None else np.full(len(columns[0]), int(uniform.argmin()), dtype=np.int64)
    orders = [_orders(date, forms, state) for date in dates]
    if any(min(pair) > 0 for pair in settled) and follow_no_pattern(
        [(state >> days[:, 2]) & 1 == 1 for days in start_and_end], start_and_end, _NO_DAY
    ):
        return _row_by_row(dates, start_and_end, settled)
    return DayOrders(orders, *_explained(orders, settled, uniform, suggested, is_path=path is not None))


@dataclass(frozen=True, slots=True)
class _Dates:
    """A column of dates; each distinct date is read day first and month first."""

    codes: Integers  # for each cell, the row of `table`; -1 for none
    table: pl.DataFrame  # for each distinct text: form, by_day and by_month [days since 1970]

    @staticmethod
    def of(tokens: pl.Series) -> _Dates:
        """Parse a column of categories."""
        code = tokens.to_physical().cast(pl.Int64).alias("code")
        distinct = pl.DataFrame([code, tokens.alias("text")]).drop_nulls().unique("code", keep="any").sort("code")
        used, texts = distinct["code"].to_numpy(), distinct["text"]
        codes = code.fill_null(-1).to_numpy()
        parts = pl.DataFrame({"text": texts.cast(pl.String)}).select(
            pl.col("text").str.extract(_PARTS, n).alias(name)
            for n, name in enumerate(("first", "mark", "second", "year"), 1)
        )
        year = pl.when(pl.col("year").str.len_bytes() == 2).then(pl.format("20{}", "year")).otherwise("year")
        table = parts.select(
            (pl.col("mark") + pl.col("year").str.len_bytes().cast(pl.String)).alias("form"),
            _days(year, "second", "first").alias("by_day"),
            _days(year, "first", "second").alias("by_month"),
        )
        return _Dates(np.where(codes >= 0, np.searchsorted(used, codes), -1), table)

    def numbered(self, forms: list[str]) -> Days:
        """For each row: its date read day first, its date read month first, and the number of its form."""
        number = pl.col("form").replace_strict(
            {form: n for n, form in enumerate(forms)}, default=0, return_dtype=pl.Int64
        )
        days = self.table.select(pl.col("by_day", "by_month").fill_null(_NO_DAY), number).to_numpy().astype(np.int32)
        return np.ascontiguousarray(np.vstack([days, np.array([[_NO_DAY, _NO_DAY, 0]], dtype=np.int32)])[self.codes])

    def counts(self) -> pl.DataFrame:
        """The table with the number of rows that have each distinct text."""
        rows = np.bincount(self.codes[self.codes >= 0], minlength=self.table.height)
        return self.table.with_columns(pl.Series("rows", rows))


def _days(year: pl.Expr, month: str, day: str) -> pl.Expr:
    """Days since 1970, null if the date does not exist."""
    text = pl.format("{}-{}-{}", year, pl.col(month).str.zfill(2), pl.col(day).str.zfill(2))
    return text.str.strptime(pl.Date, "%Y-%m-%d", strict=False).cast(pl.Int32).cast(pl.Int64)


def _ambiguous() -> pl.Expr:
    """Whether a date can be read both ways, with different results."""
    return (pl.col("by_day") != pl.col("by_month")).fill_null(value=False)


def _forms(dates: Sequence[_Dates]) -> list[str]:
    """The forms of dates with the most ambiguous cells, in descending order; empty if there are no dates."""
    table = pl.concat([date.counts() for date in dates]).filter(
        pl.any_horizontal(pl.col("by_day", "by_month").is_not_null())
    )
    if table.is_empty():
        return []
    ranked = table.group_by("form").agg(pl.col("rows").filter(_ambiguous()).sum()).sort("rows", "form", descending=True)
    forms: list[str] = ranked["form"].to_list()
    return forms[:MAX_FORMS]


def _settled(dates: Sequence[_Dates], forms: list[str]) -> list[tuple[int, int]]:
    """For each form: the number of cells that can only be day first, and only month first."""
    table = pl.concat([date.counts() for date in dates])
    table = table.with_columns(pl.when(pl.col("form").is_in(forms)).then("form").otherwise(pl.lit(forms[0])))

    def cells(form: str, possible: str, impossible: str) -> int:
        rows = table.filter(pl.col("form") == form, pl.col(possible).is_not_null(), pl.col(impossible).is_null())
        return int(rows["rows"].sum())

    return [(cells(form, "by_day", "by_month"), cells(form, "by_month", "by_day")) for form in forms]


def _prior(settled: list[tuple[int, int]], suggested: bool | None, forms: int) -> NDArray[np.float64]:
    """Cost of each state before rows are compared; bit n of a state says that days come first in form n."""
    cost = np.zeros(1 << forms)
    for state in range(1 << forms):
        for form, (days, months) in enumerate(settled):
            day_first = bool(state >> form & 1)
            share = (months if day_first else days) / max(days + months, 1)
            cost[state] += AGAINST_SETTLED * share
            if suggested is not None and suggested != day_first:
                cost[state] += AGAINST_FORMAT
            elif suggested is None and not day_first:
                cost[state] += 1e-6  # without any evidence, days come first
    return cost


def _decide(
    start: Days, end: Days, prior: NDArray[np.float64], forms: int
) -> tuple[Integers | None, NDArray[np.float64]]:
    """The states of the rows, or None if one state is best for all; and the cost of using each state for all rows."""
    # Rows are taken to be in order if they are so with all days first or with all months first.
    near, spread = max(
        (_nearness(start, state) for state in (0, (1 << forms) - 1)), key=lambda found: found[0], default=(0.0, 1.0)
    )
    uniform = prior + np.array([_uniform_cost(start, end, state, near, spread) for state in range(1 << forms)])
    # Several states are used only if that costs less than one state for all rows, changes included.
    state, cost = _viterbi(start, end, prior, near, spread)
    return (state if cost < uniform.min() - 1e-9 else None), uniform


def _nearness(start: Days, state: int) -> tuple[float, float]:
    """Share of rows that start within two days of the row before, and the days between the first and last start.

    Both are bounded, so that no start has a probability of 0 in `_step_cost`.
    """
    days = _days_in_state(start, state)
    days = days[days != _NO_DAY]
    if len(days) < 3:
        return 0.001, 365.0
    share = float((np.abs(np.diff(days)) <= 2).mean())
    return min(max(share, 0.001), 0.98), float(max(days.max() - days.min(), 30))


def _days_in_state(dates: Days, state: int) -> Days:
    """The days that dates are read as in a state; settled dates keep their own order."""
    day_first = (state >> dates[:, 2]) & 1 == 1
    chosen = np.where(day_first, dates[:, 0], dates[:, 1])
    return np.where(chosen == _NO_DAY, np.maximum(dates[:, 0], dates[:, 1]), chosen)


def _uniform_cost(start: Days, end: Days, state: int, near: float, spread: float) -> float:
    """Cost of reading all rows in one state."""
    return float(_path_cost(_days_in_state(start, state), _days_in_state(end, state), near, spread))


@compiled("float64(int64, int64)")
def _stay_cost(start: int, end: int) -> float:
    """-log of (1 + days)^-1.5, up to a constant: most stays end on the day they start."""
    if start == _NO_DAY or end == _NO_DAY:
        return 0.0
    if end < start or end - start > 31:
        return IMPOSSIBLE
    return float(1.5 * np.log1p(end - start))


@compiled("float64(int64, int64, float64, float64)")
def _step_cost(before: int, after: int, near: float, spread: float) -> float:
    """-log of a mixture: a start near the one before (heavy-tailed), or anywhere in the period.

    3.15 is the sum of 1 / (1 + days^2) over all whole days, positive and negative.
    """
    if before == _NO_DAY or after == _NO_DAY:
        return 0.0
    apart = float(after - before)
    return float(-np.log(near / (3.15 * (1.0 + apart * apart)) + (1.0 - near) / spread))


@compiled("float64(int32[::1], int32[::1], float64, float64)")
def _path_cost(start: Days, end: Days, near: float, spread: float) -> float:
    """Cost of the stays and of the steps between rows, for starts and ends [days since 1970]."""
    cost = 0.0
    before = _NO_DAY
    for i in range(len(start)):
        cost += _stay_cost(start[i], end[i]) + _step_cost(before, start[i], near, spread)
        if start[i] != _NO_DAY:
            before = start[i]
    return cost


@compiled("int64(int32[:, ::1], int64, int64)")
def _day_in_state(dates: Days, row: int, state: int) -> int:
    """`_days_in_state` for one row."""
    chosen = dates[row, 0] if (state >> dates[row, 2]) & 1 else dates[row, 1]
    return int(max(dates[row, 0], dates[row, 1]) if chosen == _NO_DAY else chosen)


@compiled("float64(int32[:, ::1], int64, int64)")
def _tie_cost(dates: Days, row: int, state: int) -> float:
    """A tiny cost for a settled date in another order, so that it decides where rows give no other evidence."""
    chosen, other = (0, 1) if (state >> dates[row, 2]) & 1 else (1, 0)
    return 1e-6 if dates[row, chosen] == _NO_DAY and dates[row, other] != _NO_DAY else 0.0


@compiled("Tuple((int64[::1], float64))(int32[:, ::1], int32[:, ::1], float64[::1], float64, float64)")
def _viterbi(start: Days, end: Days, prior: NDArray[np.float64], near: float, spread: float) -> tuple[Integers, float]:
    """The path of least cost through the states of the rows, and its cost."""
    rows, states = len(start), len(prior)
    back = np.empty((rows, states), dtype=np.uint8)
    cost = prior.copy()
    new = np.empty(states)
    before = np.full(states, _NO_DAY)  # day of the last known start, as read in each state
    here = np.empty(states, dtype=np.int64)  # the same for this row
    for i in range(rows):
        for state in range(states):
            here[state] = _day_in_state(start, i, state)
            best, source = np.inf, state
            for other in range(states):
                step = cost[other] + _step_cost(before[other], here[state], near, spread)
                if other != state:  # a change to a less plausible order also pays the difference of the priors
                    step += CHANGE + prior[state] - prior[other] if prior[state] > prior[other] else CHANGE
                if step < best - 1e-12:
                    best, source = step, other
            new[state] = best + _stay_cost(here[state], _day_in_state(end, i, state))
            new[state] += _tie_cost(start, i, state) + _tie_cost(end, i, state)
            back[i, state] = source
        for state in range(states):
            cost[state] = new[state]
            if here[state] != _NO_DAY:
                before[state] = here[state]
    path = np.empty(rows, dtype=np.int64)
    state = int(np.argmin(cost))
    total = cost[state]
    for i in range(rows - 1, -1, -1):
        path[i] = state
        state = back[i, state]
    return path, total


def _orders(dates: _Dates, forms: list[str], state: Integers) -> pl.Series:
    """Whether the day comes first in each cell."""
    days = dates.numbered(forms)
    day_first = (state >> days[:, 2]) & 1 == 1
    day_first = np.where(days[:, 1] == _NO_DAY, True, np.where(days[:, 0] == _NO_DAY, False, day_first))
    return pl.Series(day_first).set(pl.Series((days[:, :2] == _NO_DAY).all(axis=1)), None)


def _row_by_row(dates: list[_Dates], start_and_end: list[Days], settled: list[tuple[int, int]]) -> DayOrders:
    """The order of each row on its own; further columns follow that of the end."""
    *firsts, is_open = row_by_row(start_and_end[0], start_and_end[1], _NO_DAY)
    exist = [date.numbered([])[:, :2] != _NO_DAY for date in dates]
    orders = []
    for column, readings_exist in enumerate(exist):
        order = np.where(readings_exist.all(axis=1), firsts[min(column, 1)], readings_exist[:, 0])
        orders.append(pl.Series(order).set(pl.Series(~readings_exist.any(axis=1)), None))
    days, months = (sum(_count(order, value) for order in orders) for value in (True, False))
    certain, n_open = sum(a + b for a, b in settled), int(is_open.sum())
    note = (
        f"Day and month are mixed from row to row: {certain:,} dates have a part above 12; the others are read so that "
        "they lie in the same period and ends follow starts."
    )
    if n_open:
        some = (
            "1 row both readings remain possible, and it is"
            if n_open == 1
            else f"{n_open:,} rows both remain possible: they are"
        )
        note += f" In {some} set aside. To use them, export the file again with dates such as 2018-04-03."
    return DayOrders(orders, _evidence(days, months, certain), note, pl.Series(is_open))


def _explained(
    orders: list[pl.Series],
    settled: list[tuple[int, int]],
    uniform: NDArray[np.float64],
    suggested: bool | None,
    *,
    is_path: bool,
) -> tuple[Finding, str | None]:
    """The decision with its evidence, and a sentence if the user should know or decide.

    `uniform` is the cost of using each state for all rows, and `is_path` says that the order changes between rows.
    """
    days, months = (sum(_count(order, value) for order in orders) for value in (True, False))
    certain = sum(a + b for a, b in settled)
    evidence = _evidence(days, months, certain)
    if days and months:
        where = " in blocks of rows" if is_path else ""
        return evidence, (
            f"Dates are mixed{where}: {days:,} are read day first and {months:,} month first, so that ends follow "
            "starts and rows are in order. Give --map day_first=true or false if all are alike."
        )
    ranked = np.sort(uniform)
    is_open = not certain and len(ranked) > 1 and ranked[1] - ranked[0] < OPEN and suggested is None
    if is_open:
        order = "days" if days else "months"
        note = f"Nothing says whether 03/04/2018 is in March or April: {order} are taken to come first (day_first)."
        return evidence, note
    if not certain or (suggested is not None and suggested != bool(days)):
        order = "Days" if days else "Months"
        note = f"{order} come first in the dates: only then do ends follow starts and rows stay in order (day_first)."
        return evidence, note
    return evidence, None


def _evidence(days: int, months: int, certain: int) -> Finding:
    settled = "in {} of them a part is above 12."
    if days and months:
        return Finding(f"{{}} dates are read day first and {{}} month first; {settled}", (days, months, certain))
    sentence = f"{{}} dates are read {'day' if days else 'month'} first; {settled}"
    return Finding(sentence, (days or months, certain), ("day_first", bool(days)))


def _count(order: pl.Series, value: bool) -> int:
    found: Any = (order == value).sum()
    return int(found)
