"""The command ``python -m stages.mine NAME``."""

from batchwright.core.command import command

if __name__ == "__main__":
    command(
        "stages.mine.stage",
        "Rewrites the contextual batches with hard negatives mined by a trained model: data/shards/NAME.",
        "python -m stages.mine mined-1",
        name="an entry of mine in params.yaml",
    )
