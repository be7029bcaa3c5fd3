"""Rival ways to make batches, side by side: the same model, pairs and number of steps, only the batches differ."""

BASELINE = "random"
"""What all others are compared with."""
