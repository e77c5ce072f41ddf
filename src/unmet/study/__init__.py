"""Studies: the paper's experiments as grids of cells."""
