"""The contracts between the packages: each artifact's schema, reader and atomic writer, once."""
