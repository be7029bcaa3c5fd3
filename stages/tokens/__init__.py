"""Stage ``tokens``: measures what a model with one vector per token retrieves by its tokens."""
