"""Points group the digits of Wh where all numbers say so; three decimals of kWh stay decimals."""

import numpy as np
import polars as pl
import pytest

from unmet.records.grouped_digits import without_grouping_points
from unmet.records.sessions import read_sessions

HOURS = pl.Series([0.7] * 40)
WATT_HOURS = [*range(1_021, 39_000, 1_000), 377, 85]


def grouped(number: int) -> str:
    return f"{number:,}".replace(",", ".")


@pytest.mark.parametrize("heading", ["Energie", "Verbrauch (Wh)"])
@pytest.mark.parametrize("rows", [40, 6])
def test_grouped_watt_hours_are_read_as_such(heading, rows, tmp_path):
    numbers = WATT_HOURS[-rows:]
    frame = pl.DataFrame({
        "Station ID": [f"S{n}" for n in range(rows)],
        "Beginn": ["2024-03-04 08:00:00"] * rows,
        "Ende": ["2024-03-04 08:42:00"] * rows,
        heading: [grouped(number) for number in numbers],
    })  # fmt: skip
    frame.write_csv(tmp_path / "a.csv", separator=";")
    records = read_sessions(tmp_path / "a.csv", time_zone="Europe/Berlin")
    assert np.allclose(records.sessions.sort("energy_kwh")["energy_kwh"], np.sort(numbers) / 1000)
    assert any("group digits" in note for note in records.notes)
    said = [note for note in records.notes if "multiplied by" in note or "taken to be in" in note]
    assert len(said) == 1


@pytest.mark.parametrize(
    "texts",
    [
        ["7.937", "17.048", "0.377"],  # below 1, three decimals
        ["7.937", "17.048", "12"],  # 12 kWh in 0.7 h, and too few to tell
        ["7.937", "17.5", "377"],
        ["7.937", "17.048", "1377"],
        ["7.937", "17.048", "0"],
    ],
)
def test_decimals_stay_decimals(texts):
    cells = pl.Series(texts)
    read, note = without_grouping_points(cells, HOURS.head(3), 1.0)
    assert read.equals(cells)
    assert note is None


@pytest.mark.parametrize(("whole", "is_grouped"), [("12", False), ("377", True)])
def test_a_heading_in_kwh_is_believed_unless_whole_numbers_exceed_all_others(whole, is_grouped):
    cells = pl.Series("Energy (kWh)", [*map(grouped, WATT_HOURS[:38]), whole, "9"])
    _, note = without_grouping_points(cells, HOURS + 9, 1.0)
    assert (note is not None) == is_grouped


def test_a_point_before_a_decimal_comma_settles_the_others():
    read, note = without_grouping_points(pl.Series(["7.937", "1.017,5", "12,5"]), HOURS.head(3), 1.0)
    assert read.to_list() == ["7937", "1017,5", "12,5"]
    assert note is not None


def test_what_was_done_is_said_once(tmp_path):
    """Numbers of kWh below a heading of Wh: one sentence only says what was done."""
    rows = 50
    frame = pl.DataFrame({
        "Station ID": [f"S{n}" for n in range(rows)],
        "Beginn": ["2024-03-04 08:00:00"] * rows,
        "Ende": ["2024-03-04 09:00:00"] * rows,
        "Energie (Wh)": [f"{5 + n / 4:.1f}" for n in range(rows)],
    })  # fmt: skip
    frame.write_csv(tmp_path / "a.csv", separator=";")
    records = read_sessions(tmp_path / "a.csv", time_zone="Europe/Berlin")
    assert not any("multiplied by" in note for note in records.notes)
    assert any("taken to be in kWh" in note for note in records.notes)
