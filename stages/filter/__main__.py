"""The command ``python -m stages.filter``."""

from batchwright.core.command import command

if __name__ == "__main__":
    command(
        "stages.filter.stage",
        "Decides what counts as a false negative, by surrogate scores and duplicate classes: data/negatives.",
        "python -m stages.filter",
    )
