"""Training: each variant is a folder, ``common`` is what they share, and only ``launch`` imports Ray."""
