"""How long training will take, roughly, before anything was measured."""

import json
import math
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter
from tokenizers import Tokenizer

from batchwright.core.errors import InputError
from batchwright.core.paths import RESULTS, START_MODELS
from batchwright.core.terminal import duration
from batchwright.formats.models import locate_model
from pipelines.ingest.normalise import Pair
from pipelines.ingest.sources import AnySource
from project.add.preview import Preview, preview, version_of

PASSES = 6
"""Operations per weight and token: a multiplication and an addition, forward once, and backward twice."""
USED = 0.5
"""What a training of MiniLM reaches of a matrix product's speed, on two cores."""
MEASURED = 500
"""Pairs whose tokens are counted, at most."""
LONG = 600
"""Seconds from which on something quicker is named."""
QUICKER = "A static model trains in a minute: params.yaml has one below start_models and runs."
_SOURCE: TypeAdapter[AnySource] = TypeAdapter(AnySource)


def estimate(params: Mapping[str, Any], pairs: Sequence[Pair], more: bool) -> str:
    """Say how long the runs of ``params`` will take with these ``pairs``, of its last source, and those of the others.

    ``more`` says that there are further ones. Runs without a step are left out, and those whose start model is not on
    this machine; if all are, nothing is said.
    """
    ingested, read = _ingested()
    for number, entry in enumerate((params["ingest"]["sources"] or [])[:-1]):
        source = _SOURCE.validate_python(entry)
        if f"{number} {source.label}" not in read:
            earlier = _preview(source)
            pairs, more = [*pairs, *earlier.pairs], more or earlier.more
    sample = pairs[:: -(-len(pairs) // MEASURED)]
    count, known = len(pairs) + ingested, {}
    speed = USED * _speed()
    for name, run in (params.get("runs") or {}).items():
        common = {**params["train"]["common"], **run}
        start = Path(str(run.get("start", "")))
        model = (params.get("start_models") or {}).get(start.name) if start.parent == START_MODELS else None
        work = _work(model, sample) if model else None
        if work is None:
            continue
        batch = params["pack"]["batch_size"]
        epochs = min(common.get("epochs", 1), params["pack"]["epochs"])
        steps = min(count // batch * epochs, common.get("steps") or math.inf) * common.get("seeds", 1)
        if steps:
            known[name] = steps, steps * batch * work / speed
    if not known:
        return ""
    steps, seconds = (int(sum(values)) for values in zip(*known.values(), strict=True))
    least = "at least " if more else ""
    quicker = f"\n{QUICKER}" if seconds > LONG else ""
    return (
        f"Training {', '.join(known)} will take {least}about {duration(seconds)} on this machine's processors: an "
        f"estimate from {count:,} pairs, {steps:,} steps and the size of the start model. After ten steps, training "
        f"says what it measures.{quicker}"
    )


def _ingested() -> tuple[int, Collection[str]]:
    """How many training pairs there are, and the sources that they come from, by number and label."""
    try:
        found = json.loads((RESULTS / "ingest.json").read_text(encoding="utf-8"))
        return sum(int(domain["train"]) for domain in found["domains"].values()), {*found["sources"]}
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return 0, ()


def _preview(source: AnySource) -> Preview:
    try:
        return preview(source)
    except InputError:  # ingest will say it
        return Preview(pairs=[], rejected=Counter(), rows=0, more=True)


def _work(model: Mapping[str, Any], pairs: Sequence[Pair]) -> float | None:
    """Return the operations that training on a pair takes, None if the model is not here."""
    try:
        folder = locate_model(model["name"], version_of(model))
        weights = _weights(folder / "model.safetensors")
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    except Exception:  # not here, or of another kind: no reason for adding pairs to fail
        return None
    if "static_width" in model:
        weights = int(model["static_width"])
    tokenizer.no_truncation()
    tokenizer.no_padding()
    given = model.get("max_length") or 512
    total = 0
    for side in ("query", "document"):
        limit = int(given[side]) if isinstance(given, Mapping) else int(given)
        texts = [getattr(pair, side) for pair in pairs]
        total += sum(min(len(encoding.ids), limit) for encoding in tokenizer.encode_batch(texts))
    return PASSES * weights * total / len(pairs)


def _weights(file: Path) -> int:
    """Count the weights that multiply every token: all but embeddings."""
    with file.open("rb") as handle:
        header = json.loads(handle.read(int.from_bytes(handle.read(8), "little")))
    return sum(
        math.prod(tensor["shape"])
        for name, tensor in header.items()
        if name != "__metadata__" and "embed" not in name.lower()
    )


def _speed() -> float:
    """Operations per second of a matrix product on this machine, at best."""
    matrix = np.ones((1024, 1024), np.float32)
    best = math.inf
    for _ in range(8):
        start = time.perf_counter()
        np.dot(matrix, matrix)
        best = min(best, time.perf_counter() - start)
    return float(2 * 1024**3 / max(best, 1e-9))
