"""Stage ``pack``: packs clusters into training batches with false-negative masks, stored in Arrow shards."""
