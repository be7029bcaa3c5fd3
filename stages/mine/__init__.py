"""Hard negatives mined by a trained model: training batches for its next round (ANCE, arXiv 2007.00808)."""
