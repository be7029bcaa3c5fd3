"""Stage ``tokens``: what a model with a vector a token retrieves by its tokens."""
