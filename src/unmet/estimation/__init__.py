"""Estimation: from a panel to posterior draws of lost demand, without torch."""
