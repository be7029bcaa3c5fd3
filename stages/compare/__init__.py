"""Stage ``compare``: differences between systems, paired by query."""
