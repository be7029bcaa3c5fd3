"""SEED-Encoder: an encoder pre-trained with a weak decoder, then fine-tuned (*Less is More*, arXiv 2102.09206)."""

from trainers.seed.params import Params
from trainers.seed.train import train
from trainers.sentence_retrieval import retrieve

__all__ = ["Params", "retrieve", "train"]
