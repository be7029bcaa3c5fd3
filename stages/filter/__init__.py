"""Stage ``filter``: what a false negative is, for every query, by the surrogate model and by identity."""
