"""The command ``python -m stages.compare``."""

from batchwright.core.command import command

if __name__ == "__main__":
    command(
        "stages.compare.stage",
        "Compares every run with its start model, BM25 and random batches, query by query: results/compare.tsv.",
        "python -m stages.compare",
    )
