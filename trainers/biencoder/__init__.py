"""The plain biencoder: one encoder for queries and documents, one vector per text, masked InfoNCE."""

from trainers.biencoder.learner import build_learner
from trainers.biencoder.params import Params

__all__ = ["Params", "build_learner"]
