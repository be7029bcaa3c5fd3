"""The artifacts' formats: one schema, reader and writer for each."""
