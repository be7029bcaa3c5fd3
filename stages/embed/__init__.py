"""Stage ``embed``: vectors of all texts, from each encoder that later stages use."""
