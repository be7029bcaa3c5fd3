"""XTR training against ColBERT training."""
