"""Demand: records become a panel, with stations grouped into regions and energy booked to hours."""
