"""Cities: the trips of cars, and the stations where they could charge."""
