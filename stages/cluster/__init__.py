"""Stage ``cluster``: groups the training pairs of a domain so that pairs of a group are hard for each other."""
