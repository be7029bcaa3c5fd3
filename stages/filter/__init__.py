"""Stage ``filter``: decides what counts as a false negative of each query, by surrogate scores and duplicate classes.

Optionally drops inconsistent pairs and mines hard negatives.
"""
