"""Compute each domain's scores, thresholds, duplicate classes, judged cells and hard negatives."""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import numpy as np

from batchwright.by_domain.domains import Metrics, do_domains, publish_domains
from batchwright.by_domain.spread import Map, unless_beam
from batchwright.core.files import write_json
from batchwright.core.fingerprint import content_id, files_fingerprint
from batchwright.core.neighbours import processes
from batchwright.core.params import Base, load_params
from batchwright.core.paths import NEGATIVES, PAIRS, RAW, RESULTS, VECTORS, check_watched, watching
from batchwright.core.terminal import TOLD, safe, warn
from batchwright.formats.models import SIDES
from batchwright.formats.negatives import DOUBTFUL, EVERY_PAIR, KEPT, NO_PAIR, Negatives
from batchwright.formats.pairs import Texts, count_pairs, domains, pair_parts, pairs_file, scan_texts
from batchwright.formats.vectors import Provenance, VectorStore
from pipelines.beam.spread import spread
from stages import negatives as shared
from stages.filter.judgement_warnings import about_no_pair, overruled
from stages.filter.judgements import NOT_OVERRULED, NOTHING, Matched, match_all, read_judgements, verdicts
from stages.filter.params import FilterParams
from stages.filter.rank import judge_by_rank
from stages.filter.rules import Limit, doubtful, likeness_limit, thresholds, unread, vague
from stages.filter.words import texts_of_rows
from stages.negatives.choice import draw_keys
from stages.negatives.duplicates import duplicate_classes

OUTPUT = RESULTS / "filter.json"
JUDGEMENTS = RESULTS / "judgements.json"
NO_LIMIT, BLIND = "no_limit_because", "blind"
"""Why ``auto`` found no limit of likeness, and whether the vectors know too little."""


def main() -> str:
    """Write ``data/negatives``, a summary of each domain to ``results/filter.json``, and of judgements beside it."""
    params = load_params("filter", FilterParams)
    params.check_domains(domains(PAIRS))
    seed = load_params("base", Base).seed
    store = VectorStore.open(VECTORS / params.vectors)
    files = [Path(file) for file in params.judgements]
    check_watched(files, RAW / "judgements")
    check_unchanged = watching(lambda: files)
    judgements = read_judgements(files, params.judged_positive)
    check_unchanged()
    matched, unmatched = match_all(judgements, PAIRS) if files else ({}, np.empty(0, np.int64))

    def work(domain: str, folder: Path, do_parts: Map) -> Metrics:
        negatives, metrics = _judge_domain(domain, store, matched.get(domain, NOTHING), params, seed, do_parts)
        negatives.write(folder, domain)
        return metrics

    settings = (
        params.model_dump(exclude={"judgements", "likeness"}),
        seed,
        files_fingerprint([Path(shared.__file__).parent]),
    )
    needed = {
        domain: [
            (settings, params.likeness_of(domain)),
            matched.get(domain, NOTHING).fingerprint(),
            files_fingerprint([pairs_file(PAIRS, domain), store.files(domain)]),
        ]
        for domain in domains(PAIRS)
    }
    done = do_domains(
        "filter",
        Path(__file__).parent,
        work,
        needed,
        spread,
        pairs={domain: count_pairs(PAIRS, domain) for domain in needed},
        processes=processes(),
    )
    source = Provenance(
        vectors=params.vectors,
        weights=store.weights,
        pairs=files_fingerprint([PAIRS]),
        parameters=params.model_dump(),
    )
    publish_domains(done, source.write, NEGATIVES)
    metrics = {domain: of.metrics for domain, of in done.items()}
    warn("filter", _knowing_too_little(params.vectors, metrics))
    sizes = {domain: of["pairs"] for domain, of in metrics.items()}
    warn("filter", about_no_pair(judgements, unmatched))
    warn("filter", overruled(judgements, matched, NEGATIVES, sizes))
    write_json(OUTPUT, metrics)
    write_json(JUDGEMENTS, {"read": len(judgements), "unmatched": len(unmatched)})
    pairs = sum(domain["pairs"] for domain in metrics.values())
    dropped, weak = (sum(domain[name] for domain in metrics.values()) for name in ("dropped", "doubtful"))
    counts = f"{pairs:,} pairs of {len(metrics)} domains"
    said = f"{counts} scored by '{params.vectors}', {weak:,} doubtful, {dropped:,} dropped{_no_limits(metrics)}"
    if not files:
        return said
    undecided = f"; {judgements.undecided:,} rows have no verdict yet" if judgements.undecided else ""
    return (
        f"{said}{undecided}; {len(unmatched):,} of {len(judgements):,} judgements are about no domain's training pairs"
    )


def _no_limits(domains: Mapping[str, Metrics]) -> str:
    """Say in which domains ``likeness: auto`` found no limit, and why; ``domains`` are their summaries."""
    found = {domain: metrics[NO_LIMIT] for domain, metrics in domains.items() if metrics.get(BLIND) is False}
    told = [
        f"\n  no limit found in '{safe(domain)}', so nothing is masked by score: {because}"
        for domain, because in found.items()
    ]
    return "".join(told[:TOLD]) + (f"\n  nor in {len(told) - TOLD:,} more, see {OUTPUT}" if len(told) > TOLD else "")


def _knowing_too_little(vectors: str, domains: Mapping[str, Metrics]) -> Iterator[str]:
    """Tell of domains of which the vectors know too little; ``domains`` are their summaries."""
    for domain, metrics in domains.items():
        why = metrics[NO_LIMIT] if metrics.get(BLIND) else vague(metrics["doubtful"], metrics["pairs"])
        if not why:
            continue
        if metrics.get(BLIND):
            masked = f"likeness: auto sets no limit in '{domain}', and nothing is masked by score"
        else:
            masked = f"what is masked by score in '{domain}' is chance"
        yield f"{masked}: by '{vectors}', {why}; if other vectors know more, name them in filter.vectors"


def _judge_domain(
    domain: str, store: VectorStore, matched: Matched, params: FilterParams, seed: int, do_parts: Map
) -> tuple[Negatives, Metrics]:
    rng = np.random.default_rng([seed, int(content_id(domain), 16)])
    parts, do_lightly = pair_parts(PAIRS, domain, "train"), unless_beam(do_parts)
    vectors = store.of(domain).of_pairs(parts, do_lightly)
    scores = vectors.scores(do_lightly)
    query_class, document_class = (
        duplicate_classes((Texts(part, side) for part in parts), params.near_duplicates, do_parts) for side in SIDES
    )
    judged, relevant, overruled_by = verdicts(matched, query_class, document_class)
    weak = doubtful(vectors, scores, document_class, rng, do_lightly)
    blank = unread(vectors, scores)
    asked = params.likeness_of(domain)
    limit = (
        likeness_limit(vectors, query_class, document_class, rng, weak, blank, partial(texts_of_rows, parts))
        if asked == "auto"
        else Limit(EVERY_PAIR if asked is None else np.float32(asked))
    )
    negatives = Negatives(
        scores=scores,
        thresholds=thresholds(scores, params, blank),
        likeness=limit.likeness,
        query_class=query_class,
        document_class=document_class,
        dropped=np.where(weak & ~blank & params.drop_doubtful, DOUBTFUL, KEPT).astype(np.uint8),
        mined=np.empty((len(scores), 0), dtype=np.int32),
        judged=judged,
        relevant=relevant,
    )
    keys = draw_keys(seed, scan_texts(PAIRS, domain, "id", "train")) if params.mine and params.mine.sample else None
    negatives = judge_by_rank(vectors, negatives, params, keys, do_parts)
    counts = {
        "doubtful": int(np.count_nonzero(weak)),
        "judgements_overruled": int(np.count_nonzero(overruled_by != NOT_OVERRULED)),
    }
    limits = {NO_LIMIT: limit.because, BLIND: limit.blind} if limit.because else {}
    return negatives, {**_describe(negatives), **counts, **limits}


def _describe(negatives: Negatives) -> Metrics:
    queries, documents = np.bincount(negatives.query_class), np.bincount(negatives.document_class)
    return {
        "pairs": len(negatives),
        "queries": len(queries),
        "documents": len(documents),
        "largest_query_class": int(queries.max(initial=0)),
        "largest_document_class": int(documents.max(initial=0)),
        "likeness": None if negatives.likeness == NO_PAIR else round(float(negatives.likeness), 6),
        "mean_score": round(float(negatives.scores.mean()), 6) if len(negatives) else 0.0,
        "dropped": int(np.count_nonzero(~negatives.kept)),
        "mined": int(np.count_nonzero(negatives.mined >= 0)),
        "mined_missing": int(np.count_nonzero(negatives.mined < 0)),
        "judged_relevant": int(np.count_nonzero(negatives.relevant)),
        "judged_irrelevant": int(np.count_nonzero(~negatives.relevant)),
    }
