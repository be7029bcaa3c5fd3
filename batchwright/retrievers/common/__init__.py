"""Code that the retrievers share."""
