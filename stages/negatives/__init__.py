"""What the stages ``filter`` and ``mine`` share: which texts are duplicates, and which negatives are chosen."""
