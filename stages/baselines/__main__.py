"""The command ``python -m stages.baselines``."""

from batchwright.core.command import command

if __name__ == "__main__":
    command(
        "stages.baselines.stage",
        "Scores BM25 and every model in models/start, which trained models must beat: results/baselines.json.",
        "python -m stages.baselines",
    )
