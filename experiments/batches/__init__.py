"""Which batches make better models."""
