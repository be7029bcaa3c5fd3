"""Embedding: every unique text of a domain becomes one float16 vector, encoded once."""
