"""Code that all variants and pre-training share."""
