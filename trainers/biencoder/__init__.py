"""The plain biencoder: one encoder for queries and documents, one vector a text, masked InfoNCE."""

from trainers.biencoder.params import Params
from trainers.biencoder.retrieve import retrieve
from trainers.biencoder.train import train

__all__ = ["Params", "retrieve", "train"]
