"""Training: a folder a variant, and beside them what the variants share."""
