"""CDE, the contextual biencoder: one stage embeds documents of the corpus, the next one reads a text in their light
(*Contextual Document Embeddings*, section 4.2)."""

from trainers.cde.params import Params
from trainers.cde.retrieve import retrieve
from trainers.cde.train import train

__all__ = ["Params", "retrieve", "train"]
