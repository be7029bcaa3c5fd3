"""The plain biencoder: one encoder for queries and documents, one vector a text, masked InfoNCE."""

from trainers.biencoder.params import Params
from trainers.biencoder.train import train
from trainers.sentence_retrieval import retrieve

__all__ = ["Params", "retrieve", "train"]
