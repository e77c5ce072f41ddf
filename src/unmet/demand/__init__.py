"""Demand: stations grouped into regions, energy booked to hours."""
