"""All orders, by name."""

from functools import partial

from benchmarks.methods import faiss_balanced, gcbs, reference, reference_shuffled
from experiments.rivals.ours import after_random, ours, over_all
from experiments.rivals.published import b3, merrick, once
from experiments.rivals.streams import Order

ORDERS: dict[str, Order] = {
    "random": partial(ours, [0.0]),
    "ours": partial(ours, [0.0, 1.0]),
    "ours, one clustering": partial(ours, [0.0, 1.0], clusterings=1),
    "ours from the start": partial(ours, [1.0]),
    "ours from a quarter on": partial(ours, [0.0, 1.0, 1.0, 1.0]),
    "ours, half of a batch": partial(ours, [0.0, 0.5]),
    "reference": partial(once, reference),
    "reference, shuffled": partial(once, reference_shuffled),
    "faiss balanced": partial(once, faiss_balanced),
    "gcbs": partial(once, gcbs),
    "merrick": merrick,
    "b3": b3,
}
ORDERS |= {f"{name} over all": partial(over_all, ORDERS[name]) for name in ("random", "ours")}
ORDERS |= {
    f"random, then {name}": partial(after_random, ORDERS[name]) for name in ("reference", "faiss balanced", "b3")
}
