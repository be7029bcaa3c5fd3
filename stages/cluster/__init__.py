"""Stage ``cluster``: groups each domain's training pairs so that pairs in the same cluster are hard for each other."""
