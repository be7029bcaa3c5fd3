"""Rival ways to make batches, side by side: the same model, pairs and number of steps, only the batches differ."""

BASELINE = "random"
"""What all others are compared with."""
SEEN = ", seen"
"""Ends the names of sets whose training documents are searched, too."""
