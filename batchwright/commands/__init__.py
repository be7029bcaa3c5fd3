"""The commands of ``batchwright``."""
