"""Write the table of results into README.md from the committed results: `python docs/readme_table.py`."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
BEGIN, END = "<!-- results -->", "<!-- end of results -->"
MODELS = ("Gaussian", "Tobit", "Quantile", "Censored quantile")


def page(name: str) -> str:
    """Read a page of results."""
    return (ROOT / "docs" / "results" / f"{name}.md").read_text(encoding="utf-8")


def row(text: str, label: str) -> list[str]:
    """The cells of the first row with this label."""
    line = next(line for line in text.splitlines() if line.startswith(f"| {label} |"))
    return [cell.strip() for cell in line.strip("|").split("|")][1:]


def mean(cell: str) -> str:
    """The mean in a cell such as `0.5 ± 0.1`."""
    return cell.split(" ")[0]


def table() -> str:
    """The paper's numbers next to ours, then results that the paper does not have."""
    rows = []
    hours = page("censoring")
    for label in ("Gas station", "Three-hour limit", "First come, first served"):
        ours, paper = re.fullmatch(r"([\d.]+) \(([\d.]+)\)", row(hours, label)[-1]).groups()  # type: ignore[union-attr]
        rows.append((f"hours in which demand is lost, 5 % electric cars: {label.lower()}", f"{paper} %", f"{ours} %"))
    losses = page("total").split("| first-come |")[1]
    for model in MODELS:
        from_model = losses[losses.index(f"| {model} |") :]  # the paper's row follows that of the model
        paper = row(from_model, "the paper's")[4]
        rows.append((f"tilted loss, first come at 5 %: {model}", paper, mean(row(losses, model)[4])))
    beyond = ("Exposure-aware", "Oracle")
    values = " / ".join(mean(row(losses, model)[4]) for model in beyond)
    rows.append((f"the same, with the estimate of lost demand / with the truth: {' / '.join(beyond)}", "", values))
    city, towns, plans = page("lost-city"), page("towns").split("## By town")[1], page("planning")
    ratio = re.search(r"Lost energy is ([\d.]+ to [\d.]+)", city)[1]  # type: ignore[index]
    inside = row(city, "totals inside their interval")[0]
    rows.append(("lost energy of simulated cities, estimated / true", "", f"{ratio} (truth in interval: {inside})"))
    cells = [row(towns, town) for town in ("Dundee", "Boulder", "Caltech", "Lugano", "Paris")]
    means = [float(town[2]) for town in cells]
    inside = f"{sum(int(town[6]) for town in cells)} of {sum(int(town[1]) for town in cells)}"
    spread = f"{min(means)} to {max(means)} (truth in interval: {inside})"
    rows.append(("the same in five real towns with plugs removed on paper, range of town means", "", spread))
    gain = row(plans, "mean gain of `exposure`, relative to `truth`")[0]
    rows.append(("gain of a plan from records / of a plan that knows the truth", "", gain))
    return "\n".join(["| | the paper | here |", "| --- | ---: | ---: |", *(f"| {a} | {b} | {c} |" for a, b, c in rows)])


def with_table(readme: str) -> str:
    """The README with the current table."""
    head, rest = readme.split(BEGIN)
    return f"{head}{BEGIN}\n{table()}\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    path = ROOT / "README.md"
    path.write_text(with_table(path.read_text(encoding="utf-8")), encoding="utf-8")
