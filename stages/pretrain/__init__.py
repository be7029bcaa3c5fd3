"""Pre-training of the encoders that a variant starts from."""
