"""Methods to make batches, compared by the hardness of their batches and by their cost."""
