"""Stage ``train``: a variant trained on the packed batches."""
