"""The command ``python -m stages.evaluate RUN``."""

from batchwright.core.command import command

if __name__ == "__main__":
    command(
        "stages.evaluate.stage",
        "Scores the model of one run on held-out queries and BEIR collections: results/evaluate/RUN.json.",
        "python -m stages.evaluate biencoder",
        run="an entry of runs in params.yaml",
    )
