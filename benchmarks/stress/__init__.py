"""Stress bank: simulated networks whose lost demand is known, independent of the package's own city."""
