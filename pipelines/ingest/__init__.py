"""Ingestion: turns raw rows from any kind of source into normalised, unique pairs, one Parquet file per domain."""
