"""Stage ``mine``: the contextual batches with hard negatives that trained models and BM25 find."""
