"""Stage ``evaluate``: how well a trained model retrieves, beside what it must beat."""
