"""Stage ``pack``: training batches from clusters, with their false-negative masks, in Arrow shards."""
