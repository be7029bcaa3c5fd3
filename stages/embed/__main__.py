"""The command ``python -m stages.embed``."""

from batchwright.core.command import command

if __name__ == "__main__":
    command(
        "stages.embed.stage",
        "Encodes every unique text of the pairs with each model in embed.models: data/vectors.",
        "python -m stages.embed",
    )
