"""Stage ``baselines``: what a trained model must beat."""
