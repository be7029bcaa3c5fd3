"""Stage ``embed``: encodes all texts with each encoder that later stages use."""
