"""Apache Beam pipelines: what is done record by record."""
