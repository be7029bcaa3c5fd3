"""XTR: a vector a token; documents are found, and scored, by the tokens that a query's tokens retrieve
(*Rethinking the Role of Token Retrieval in Multi-Vector Retrieval*)."""

from trainers.xtr.params import Params
from trainers.xtr.retrieve import retrieve
from trainers.xtr.train import train

__all__ = ["Params", "retrieve", "train"]
