"""Stage ``tune``: settings and batches of a run, found by short trials on dev queries."""
