"""Training batches, and the retrieval models trained on them: what other programs import."""
