"""What teachers know that a student does not.

``DATA`` are Parquet files as ``experiments.rivals`` reads them, RUNS a folder that it wrote. A static model, the
student, trains on random batches at the settings that are best by RUNS, and ranks documents for test queries. A teacher
ranks the first of them anew (``over student``, in nDCG@10). Of training pairs, a teacher ranks the share ``first``
above their hard negatives, and the student ``student first``. ``doubt`` is the mean of what the softmax of a teacher's
scores gives to hard negatives, ``sure`` the share of pairs to whose negatives it gives less than a hundredth, both at
the temperature that is best by RUNS. ``seconds`` is what the teacher's training and its scores took.
"""

from collections.abc import Callable, Mapping
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from batchwright.core.command import run
from batchwright.core.files import write_tsv
from experiments.rivals import BASELINE
from experiments.rivals.arms import ARMS, FOUR
from experiments.rivals.compare import texts_of
from experiments.rivals.cross_encoder import score_with, trained_on
from experiments.rivals.encoders import Kind, build
from experiments.rivals.negatives import Scores, candidates_of, ranks_first, taught
from experiments.rivals.orders import steps
from experiments.rivals.runs import Row, Runs
from experiments.rivals.sets import SURROGATES, PairSet, pairs_parser, read_set
from experiments.rivals.summary import Group, gain, outcomes
from experiments.rivals.training import DEPTH, Settings, embed, ndcg, train

KIND: Kind = "static"
EPOCHS, SEED = 4, 1
QUERIES, RANKED = 200, 20
"""Test queries that teachers look at, and how many documents of each."""
SURE = 0.01
EXAMPLE = "python -m experiments.rivals.knowledge pairs/nl2bash.parquet --runs static --output knowledge.tsv"
Rows = NDArray[np.int64]


def main() -> str:
    """Ask the teachers whose arms were run about all sets; the table is written anew after each."""
    parser = pairs_parser("experiments.rivals.knowledge", str(__doc__), EXAMPLE, searches=True)
    parser.add_argument("--runs", type=Path, required=True)
    arguments = parser.parse_args()
    best = outcomes(Runs(arguments.runs))
    rows: list[Row] = []
    for file in arguments.data:
        pairs = read_set(file.stem, [file], arguments.vectors, seen=arguments.seen)
        arms = best[Group(pairs.name, KIND, EPOCHS)]
        rows += compare(pairs, {name: arm.settings for name, arm in arms.items()})
        write_tsv(arguments.output, rows)
    return f"{len(rows)} rows in {arguments.output}"


def compare(pairs: PairSet, best: Mapping[str, Settings]) -> list[Row]:
    """One row per teacher; ``best`` are the settings of the student and of the arms with teachers."""
    asked = pairs.held_out.places(dev=False)[:QUERIES]
    relevant = [pairs.held_out.relevant[place] for place in asked]
    ranked, of_training = student(pairs, best[BASELINE], asked)
    alone = ndcg(ranked[:, :DEPTH], relevant)
    rows: list[Row] = []
    for arm, rank in TEACHERS.items():
        if arm not in best:
            continue
        if (teacher := ARMS[arm].at(best[arm]).teacher) is None:
            raise ValueError(f"{arm!r} has no teacher")
        told = taught(pairs.training, FOUR, teacher.score)
        order = np.argsort(-rank(pairs, asked, ranked), axis=1, kind="stable")
        again = ndcg(np.take_along_axis(ranked, order, axis=1)[:, :DEPTH], relevant)
        over = gain(*(each[None].astype(np.float16) for each in (again, alone)))
        doubts = doubt(told.scores, teacher.temperature)
        row: Row = {"set": pairs.name, "arm": arm, "seconds": round(told.seconds)}
        row |= {"student": round(float(alone.mean()), 4), "over student": over}
        row |= {"student first": round(ranks_first(of_training), 3), "first": round(ranks_first(told.scores), 3)}
        row |= {"temperature": teacher.temperature, "doubt": round(float(doubts.mean()), 3)}
        rows.append({**row, "sure": round(float(np.mean(doubts < SURE)), 3)})
        print("  ".join(f"{name} {value}" for name, value in rows[-1].items()), flush=True)
    return rows


def student(pairs: PairSet, settings: Settings, asked: Rows) -> tuple[Rows, Scores]:
    """Train it; return the documents ``(Q, RANKED)`` that it ranks first, and its scores of what teachers scored."""
    texts, arm, count = texts_of(pairs, KIND), ARMS[BASELINE], steps(pairs.training, EPOCHS)
    model, batches = build(KIND, SEED, texts.tokens), islice(arm.batches(pairs.training, EPOCHS, SEED), count)
    loss = arm.loss(pairs.training)
    train(model, KIND, texts.pairs, batches, count, loss, settings, lambda _: np.zeros(1, np.float32), points=1)
    scores = embed(model, texts.held_out[0][asked]) @ embed(model, texts.held_out[1]).T
    ranked = np.argsort(-scores, axis=1, kind="stable")[:, :RANKED]
    queries, documents = (embed(model, side) for side in texts.pairs)
    candidates = candidates_of(pairs.training, FOUR)
    own = np.einsum("nd,nkd->nk", queries, documents[candidates])
    return ranked, np.where(candidates >= 0, own, np.float32(np.nan))


def doubt(scores: Scores, temperature: float) -> Scores:
    """What the softmax of each query's scores gives to its hard negatives ``(n,)``."""
    there = scores[np.isfinite(scores[:, 0])] / temperature
    doubts: Scores = 1 - softmax(np.where(np.isnan(there), -np.inf, there), axis=1)[:, 0]
    return doubts


def rank_with_minilm(pairs: PairSet, asked: Rows, ranked: Rows) -> Scores:
    """MiniLM's scores of the ``ranked`` documents."""
    queries = [pairs.held_out.queries[place] for place in asked]
    different, place = np.unique(ranked, return_inverse=True)
    documents = [pairs.held_out.documents[row] for row in different]
    vectors = SURROGATES["minilm"](queries, documents).astype(np.float32)
    of_documents = vectors[len(queries) :][place.reshape(ranked.shape)]
    scores: Scores = np.einsum("nd,nkd->nk", vectors[: len(queries)], of_documents)
    return scores


def rank_with_cross_encoder(pairs: PairSet, asked: Rows, ranked: Rows) -> Scores:
    """The cross-encoder's."""
    training, queries = pairs.training, [pairs.held_out.queries[place] for place in asked]
    with TemporaryDirectory() as temporary:
        folder = training.folder or Path(temporary)
        model = trained_on(training.queries, training.documents, candidates_of(training, FOUR), folder)
        return score_with(model, queries, pairs.held_out.documents, ranked)


TEACHERS: dict[str, Callable[[PairSet, Rows, Rows], Scores]] = {
    "taught by MiniLM": rank_with_minilm,
    "taught by a cross-encoder": rank_with_cross_encoder,
}

if __name__ == "__main__":
    run("knowledge", main)
