"""Stage ``ingest``: raw files of any kind to unique pairs by domain."""
