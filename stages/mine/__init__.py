"""Stage ``mine``: mines hard negatives with a trained model, for the next training round (ANCE, arXiv 2007.00808)."""
