"""The command ``python -m stages.pretrain NAME``."""

from batchwright.core.command import command

if __name__ == "__main__":
    command(
        "stages.pretrain.stage",
        "Pre-trains an encoder on the texts of all training pairs: models/start/NAME.",
        "python -m stages.pretrain seed_encoder",
        name="an entry of pretrain in params.yaml",
    )
