"""CDE against the biencoder, and which context helps it."""
