"""What models are scored on, and how."""
