"""Stage ``evaluate``: scores how well a trained model retrieves."""
