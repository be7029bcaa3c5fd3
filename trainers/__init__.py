"""Training: what all variants share lies here, a variant is a folder; only ``launch`` knows of Ray."""
