"""The biencoder: one vector per text."""

from batchwright.retrievers.common.dense import DenseRetriever

load = DenseRetriever
