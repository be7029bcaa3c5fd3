"""Training batches and the retrieval models trained on them: the importable library."""
