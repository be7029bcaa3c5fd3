"""Experiments on training elsewhere with our batches."""
