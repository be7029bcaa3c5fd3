"""Stage ``baselines``: scores BM25 and the start models, which trained models must beat."""
