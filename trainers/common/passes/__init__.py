"""How models run in training: what they read, in which precision, and what dropout draws."""
