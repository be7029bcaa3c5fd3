"""The pipeline as a drawing."""
