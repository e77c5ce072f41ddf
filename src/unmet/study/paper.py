"""The numbers that the paper publishes, to stand beside ours.

Hüttel, Rodrigues and Pereira, "Mind The Gap: Modelling Difference Between Censored and Uncensored Electric Vehicle
Charging Demand".
"""

from __future__ import annotations

__all__ = ["CENSORED_HOURS_BY_REGION_PERCENT", "CENSORED_HOURS_PERCENT", "PENETRATIONS", "QUEUES"]

QUEUES = ("gas-station", "three-hour", "first-come")
PENETRATIONS = (0.01, 0.02, 0.03, 0.04, 0.05)

CENSORED_HOURS_PERCENT: dict[str, tuple[float, ...]] = {
    "gas-station": (0.1, 2.2, 4.9, 9.8, 16.4),  # the first is printed as "<0.1"
    "three-hour": (4.1, 17.6, 33.2, 46.8, 56.9),
    "first-come": (8.3, 30.1, 53.2, 66.2, 70.5),
}
"""Hours in which demand was lost anywhere in the city, percent, by penetration (the paper's Table 1)."""

CENSORED_HOURS_BY_REGION_PERCENT: dict[str, tuple[tuple[float, ...], ...]] = {
    "gas-station": (
        (0.22, 0.04, 0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 0.04),
        (1.26, 0.09, 0.00, 0.05, 0.05, 0.05, 0.05, 0.40, 0.18, 0.10),
        (2.80, 0.22, 0.00, 0.27, 0.14, 0.18, 0.09, 0.67, 0.31, 0.45),
        (5.08, 0.49, 0.18, 0.22, 0.50, 1.13, 0.09, 1.91, 0.86, 0.49),
        (8.11, 1.09, 0.36, 0.63, 1.40, 2.17, 0.36, 3.09, 2.22, 1.22),
    ),
    "three-hour": (
        (2.08, 0.27, 0.00, 0.36, 0.09, 0.14, 0.04, 0.27, 0.63, 0.27),
        (9.74, 1.00, 0.22, 1.63, 0.45, 0.50, 0.36, 1.54, 3.27, 1.04),
        (20.80, 4.08, 0.18, 2.72, 1.72, 1.22, 0.58, 3.72, 7.11, 2.22),
        (31.30, 6.25, 0.54, 4.80, 3.27, 3.53, 1.40, 7.52, 10.87, 5.21),
        (41.96, 11.69, 1.45, 9.15, 5.66, 5.89, 2.62, 10.24, 13.18, 8.47),
    ),
    "first-come": (
        (4.17, 0.77, 0.04, 0.86, 0.13, 0.22, 0.22, 0.54, 1.27, 0.59),
        (17.68, 2.36, 0.36, 3.49, 1.99, 1.04, 0.63, 2.62, 5.20, 2.22),
        (38.70, 7.11, 0.58, 6.57, 4.17, 5.71, 1.31, 7.43, 12.96, 4.80),
        (54.64, 12.00, 2.53, 10.74, 6.62, 13.68, 2.45, 12.96, 22.33, 11.69),
        (61.03, 20.29, 3.12, 16.31, 11.28, 24.33, 6.57, 20.16, 31.17, 16.67),
    ),
}
"""The same by the paper's clusters 0 to 9 (a column each), one row a penetration (its appendix)."""
