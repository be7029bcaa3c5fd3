"""Embedding: encodes every unique text of a domain once, as one float16 vector."""
