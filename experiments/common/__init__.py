"""Shared by the experiments: small models, and a folder to run stages in."""
