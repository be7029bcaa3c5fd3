"""SEED-Encoder: one vector per text, the state at CLS."""

from batchwright.retrievers.common.dense import DenseRetriever

load = DenseRetriever
