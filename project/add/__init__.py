"""``batchwright add``: looks at a file of pairs, and writes it into ``params.yaml`` as a source."""

from project.add.add import main

__all__ = ["main"]
