"""SEED-Encoder: an encoder pre-trained with a weak decoder, then fine-tuned (*Less is More*, arXiv 2102.09206)."""

from trainers.seed_encoder.learner import build_learner
from trainers.seed_encoder.params import Params

__all__ = ["Params", "build_learner"]
