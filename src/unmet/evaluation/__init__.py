"""Evaluation of forecasts, in the paper's measures and in kWh."""
