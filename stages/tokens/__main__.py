"""The command ``python -m stages.tokens RUN``."""

from batchwright.core.command import command

if __name__ == "__main__":
    command(
        "stages.tokens.stage",
        "Measures how an XTR run's retrieval depends on the number of tokens and on imputation: results/tokens.",
        "python -m stages.tokens xtr",
        run="an entry of tokens in params.yaml",
    )
