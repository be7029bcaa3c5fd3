"""Stage ``ingest``: turns raw sources of any kind into unique pairs, grouped by domain."""
