"""CDE, the contextual biencoder: one stage embeds documents of the corpus, the next one reads a text in their light
(*Contextual Document Embeddings*, section 4.2)."""

from trainers.cde.learner import ContextualLearner
from trainers.cde.params import Params

build_learner = ContextualLearner

__all__ = ["Params", "build_learner"]
