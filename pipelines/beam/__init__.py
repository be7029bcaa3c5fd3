"""Apache Beam: what the pipelines share, and independent work taken to several processes."""
