"""``batchwright retrain``: trains again on what came since, and promotes only what is not worse."""
