"""Evaluation: how good forecasts are, in the paper's measures and in kWh."""
