"""The dataset card of shards, a README.md that the Hugging Face hub and ``datasets`` read."""

from batchwright.formats.dataset_card.card import write_card

__all__ = ["write_card"]
