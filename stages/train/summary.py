"""Summarise a training curve."""

from collections.abc import Mapping, Sequence

WINDOW = 10


def summarise(curve: Sequence[Mapping[str, str]], batch_size: int) -> dict[str, float | int]:
    """Return the number of steps and pairs, the mean loss of the first and last steps, and the mean last accuracy."""
    first, last = curve[:WINDOW], curve[-WINDOW:]
    return {
        "steps": len(curve),
        "pairs": len(curve) * batch_size,
        "first_loss": _mean(first, "loss"),
        "last_loss": _mean(last, "loss"),
        "accuracy": _mean(last, "accuracy"),
    }


def summarise_dev(curve: Sequence[Mapping[str, str]]) -> dict[str, float]:
    """Return nDCG@10 on the dev queries before the first and after the last step."""
    return {f"dev_{name}": float(curve[place]["ndcg@10"]) for name, place in (("first", 0), ("last", -1))}


def _mean(rows: Sequence[Mapping[str, str]], column: str) -> float:
    return round(sum(float(row[column]) for row in rows) / len(rows), 6)
