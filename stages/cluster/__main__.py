"""The command ``python -m stages.cluster``."""

from batchwright.core.command import command

if __name__ == "__main__":
    command(
        "stages.cluster",
        "Groups the training pairs of every domain into clusters of pairs that are hard for each other: data/clusters.",
        "python -m stages.cluster",
    )
