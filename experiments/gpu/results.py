"""Tables of results, written after every evaluation, and the differences between arms, paired by query."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from batchwright.core.atomic import atomic_file
from batchwright.core.errors import InputError
from batchwright.core.files import write_tsv
from experiments.gpu.arms import COMPARED
from experiments.gpu.evaluate import queries_of
from experiments.gpu.folder import Test
from stages.scoring.paired import difference, estimate

Scores = NDArray[np.float32]
FEWEST = 50
"""Queries of a set from which on it has a row of its own."""
KINDS = ("held out", "unseen", "beir")


@dataclass(kw_only=True)
class Results:
    """The rows of ``file``; scores of each query are in a file beside it, as float16."""

    file: Path
    tests: Sequence[Test]
    card: str
    rows: list[dict[str, Any]] = field(default_factory=list)
    curve: list[dict[str, Any]] = field(default_factory=list)
    scores: dict[str, Scores] = field(default_factory=dict)

    def add(self, arm: str, pairs: int, context: str, scores: Scores, seconds: float) -> None:
        """Add what an arm scores after so many pairs, print the means of each kind, and write all."""
        self.scores[f"{arm}|{pairs}|{context}"] = scores.astype(np.float16)
        for kind, name, chosen in groups(self.tests):
            mean, error, _ = estimate(scores[chosen])
            row = {
                "card": self.card,
                "arm": arm,
                "pairs": pairs,
                "context": context,
                "kind": kind,
                "set": name,
                "queries": int(chosen.sum()),
                "ndcg@10": round(mean, 5),
                "error": round(error, 5) if math.isfinite(error) else "",
                "seconds": round(seconds, 1),
            }
            self.rows.append(row)
            if name == "all":
                print(f"{arm}, {pairs:,} pairs, context {context}, {kind}: {mean:.4f} ± {error:.4f}", flush=True)
        write_tsv(self.file, self.rows)
        names = [f"{test.kind}: {test.name}" for test in self.tests]
        arrays: dict[str, Any] = {"tests": np.array(names), "of": queries_of(self.tests), **self.scores}
        with atomic_file(self.file.with_suffix(".npz")) as temporary, temporary.open("wb") as handle:
            np.savez_compressed(handle, **arrays)

    def trained(self, arm: str, pairs: int, outcomes: NDArray[np.float64], seconds: float, size: int) -> None:
        """Add the mean loss and accuracy of a turn of training, and write the curve beside the table."""
        loss, accuracy = outcomes.mean(axis=0)
        row = {"arm": arm, "pairs": pairs, "loss": loss, "accuracy": accuracy, "seconds": seconds}
        self.curve.append(row | {"pairs_per_second": len(outcomes) * size / seconds})
        write_tsv(self.file.with_name(f"{self.file.stem}-curve.tsv"), self.curve)
        rate = self.curve[-1]["pairs_per_second"]
        print(f"{arm}, {pairs:,} pairs: loss {loss:.4f}, accuracy {accuracy:.3f}, {rate:,.0f} pairs/s", flush=True)


def groups(tests: Sequence[Test]) -> Iterator[tuple[str, str, NDArray[np.bool_]]]:
    """The queries of each kind, and of each set that has enough."""
    of = queries_of(tests)
    for kind in KINDS:
        own = [place for place, test in enumerate(tests) if test.kind == kind]
        if own:
            yield kind, "all", np.isin(of, own)
        yield from ((kind, tests[place].name, of == place) for place in own if len(tests[place].queries) >= FEWEST)


def summarise(file: Path) -> Iterator[str]:
    """Yield the differences of all evaluations, and write those of the last one beside ``file``.

    Raises:
        InputError: there is no such file.
    """
    if not file.exists():
        raise InputError(f"{file}: no such file; run experiments.gpu.run first")
    with np.load(file) as arrays:
        kinds = np.array([name.split(": ")[0] for name in arrays["tests"].tolist()])[arrays["of"]]
        scores = {tuple(key.split("|")): arrays[key].astype(np.float64) for key in arrays.files if "|" in key}
    rows: list[dict[str, str]] = []
    for pairs in sorted({int(key[1]) for key in scores}):
        rows = []
        for (ours, read), (theirs, other) in COMPARED:
            left, right = scores.get((ours, str(pairs), read)), scores.get((theirs, str(pairs), other))
            if left is None or right is None:
                continue
            row = {"nDCG@10": f"{ours} ({read}) - {theirs} ({other})"}
            for kind in KINDS:
                if (chosen := kinds == kind).any():
                    mean, error, _ = difference(left[chosen], right[chosen])
                    row[kind] = f"{mean:+.3f} ± {error:.3f}".replace("0.", ".")
            rows.append(row)
            yield f"{pairs:,} pairs: " + ", ".join(row.values())
    write_tsv(file.with_name(f"{file.stem}-differences.tsv"), rows)
