"""The command ``python -m stages.baselines``."""

from batchwright.core.command import command

if __name__ == "__main__":
    command(
        "stages.baselines",
        "Scores what trained models must beat, BM25 and every model in models/start: results/baselines.json.",
        "python -m stages.baselines",
    )
