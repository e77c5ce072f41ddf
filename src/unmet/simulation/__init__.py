"""Simulation: from trips of electric cars to arrivals at stations."""
