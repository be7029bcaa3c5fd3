"""The command ``python -m stages.tokens RUN``."""

from batchwright.core.command import command

if __name__ == "__main__":
    command(
        "stages.tokens",
        "Measures an XTR run's retrieval by the number of tokens retrieved and by imputation: results/tokens.",
        "python -m stages.tokens xtr",
        run="an entry of tokens in params.yaml",
    )
