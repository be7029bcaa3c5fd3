"""Stage ``filter``: what a false negative is, for every query, by the surrogate model and by identity.

By request also which pairs to leave out, and which documents to add as hard negatives.
"""
