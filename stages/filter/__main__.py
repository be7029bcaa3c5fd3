"""The command ``python -m stages.filter``."""

from batchwright.core.command import command

if __name__ == "__main__":
    command(
        "stages.filter",
        "Decides what counts as a false negative: surrogate scores, thresholds and duplicate classes in data/negatives.",
        "python -m stages.filter",
    )
