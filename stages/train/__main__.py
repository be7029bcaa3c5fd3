"""The command ``python -m stages.train RUN``."""

from batchwright.core.command import command

if __name__ == "__main__":
    command(
        "stages.train.stage",
        "Trains one run: models/RUN, and its training curve in results/train.",
        "python -m stages.train biencoder",
        run="an entry of runs in params.yaml",
    )
