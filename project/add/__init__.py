"""``batchwright add``: looks at a file of pairs, and writes it into ``params.yaml`` as a source."""
