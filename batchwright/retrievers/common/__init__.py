"""What the retrievers share."""
