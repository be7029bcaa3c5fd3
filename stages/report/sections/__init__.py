"""The sections of the page, but for the browser of batches."""
