"""Raw rows of any kind of source to normalised, unique pairs, a Parquet file a domain."""
