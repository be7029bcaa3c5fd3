"""CDE, the contextual biencoder: stage 1 embeds context documents, stage 2 embeds a text together with them.

*Contextual Document Embeddings* (arXiv 2410.02525), section 4.2.
"""

from trainers.cde.learner import ContextualLearner
from trainers.cde.start import Params

build_learner = ContextualLearner

__all__ = ["Params", "build_learner"]
