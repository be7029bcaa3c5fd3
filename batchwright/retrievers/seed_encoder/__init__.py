"""SEED-Encoder: one vector per text, the hidden state of the CLS token."""

from batchwright.retrievers.common.dense import DenseRetriever

load = DenseRetriever
