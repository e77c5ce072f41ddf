"""Simulation: trips of electric cars in, arrivals at stations out."""
