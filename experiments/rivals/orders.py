"""All orders, by name."""

from functools import partial

from experiments.batches.methods import faiss_balanced, gcbs, reference, reference_shuffled
from experiments.rivals.ours import after_random, ours, over_all
from experiments.rivals.published import b3, merrick, once
from experiments.rivals.streams import Order

ORDERS: dict[str, Order] = {
    "random": partial(ours, [0.0]),
    "random over all": partial(over_all, partial(ours, [0.0])),
    "reference": partial(once, reference),
    "reference, shuffled": partial(once, reference_shuffled),
    "faiss balanced": partial(once, faiss_balanced),
    "gcbs": partial(once, gcbs),
    "merrick": merrick,
    "b3": b3,
}
ORDERS |= {
    f"random, then {name}": partial(after_random, ORDERS[name]) for name in ("reference", "faiss balanced", "b3")
}
