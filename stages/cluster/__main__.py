"""The command ``python -m stages.cluster``."""

from batchwright.core.command import command

if __name__ == "__main__":
    command(
        "stages.cluster.stage",
        "Groups each domain's training pairs into clusters of pairs that are hard for each other: data/clusters.",
        "python -m stages.cluster",
    )
