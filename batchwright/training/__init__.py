"""Training on shards with PyTorch: the batches and the masked loss, for our trainers and for others."""
