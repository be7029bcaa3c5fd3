"""Stage ``train``: trains a variant on packed batches."""
