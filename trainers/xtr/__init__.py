"""XTR: one vector per token. Documents are found and scored by the tokens that a query's tokens retrieve.

*Rethinking the Role of Token Retrieval in Multi-Vector Retrieval* (arXiv 2304.01982).
"""

from trainers.xtr.learner import Params, TokenLearner

build_learner = TokenLearner

__all__ = ["Params", "build_learner"]
