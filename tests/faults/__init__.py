"""Damage, kills and hostile files: nothing is lost, nothing is let in, and nothing is silent."""
