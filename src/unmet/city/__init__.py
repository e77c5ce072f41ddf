"""The city: where cars drive and where they could charge."""
