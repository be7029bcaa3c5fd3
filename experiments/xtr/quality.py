"""XTR training against ColBERT training with the same budget, searched exactly and by retrieved tokens.

``python -m experiments.xtr.quality DATA --domains ... [--start MODEL] [--share S] [--seeds N] [--steps N]
[--output FILE]``

``DATA`` is a folder like the ``data`` that ``dvc repro embed`` makes. ``home`` are the held-out queries of
``--domains``, ``elsewhere`` those of all other domains. Without ``--start``, both trainings start from a small encoder
with random weights. ``all`` compares all tokens of query and document; a number means that each query token retrieves
that many tokens.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.utils.rnn import pad_sequence

from batchwright.core.results import read_json, read_tsv, write_tsv
from batchwright.retrievers.common.info import ModelInfo
from batchwright.retrievers.xtr.encode import TokenVectors, encode_tokens
from batchwright.retrievers.xtr.impute import collect
from batchwright.retrievers.xtr.index import TokenIndex
from batchwright.retrievers.xtr.model import load_token_model
from batchwright.retrievers.xtr.rank import search_tokens
from experiments.common.arguments import training_parser
from experiments.common.small_models import BASE, fetched, prepare_start
from experiments.common.workspace import Row, Workspace, summary
from stages.scoring.collection import Collection
from stages.scoring.measures import DEPTH, average, score_queries
from stages.scoring.params import HeldOutParams
from trainers.xtr.scores import Tokens, score

ASKED = HeldOutParams(queries=500, documents=3000)
SCORES = ("colbert", "xtr")
TOKENS = (10, 100, 1000)


def main() -> None:
    """Print one line per training, and write one row per run and collection."""
    arguments = _parse()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        workspace = Workspace(Path(folder), arguments.data, arguments.domains, arguments.share, ASKED)
        for seed in range(arguments.seeds):
            rows += _run_seed(workspace, seed, arguments)
            if arguments.output:
                write_tsv(arguments.output, rows)
    for name in workspace.collections:
        for kind in SCORES:
            found = [row for row in rows if (row["score"], row["collection"]) == (kind, name)]
            print(summary(f"{kind}, {name}", found, [key for key in rows[0] if key.startswith("ndcg")]), flush=True)


def _parse() -> argparse.Namespace:
    parser = training_parser(
        "experiments.xtr.quality",
        str(__doc__),
        "python -m experiments.xtr.quality data --domains medquad squad --steps 200",
    )
    parser.add_argument("--vectors", default="minilm")
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--start")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--steps", type=int)
    return parser.parse_args()


def _run_seed(workspace: Workspace, seed: int, arguments: argparse.Namespace) -> list[Row]:
    changes = {
        "base.seed": seed,
        "cluster.vectors": arguments.vectors,
        "filter.vectors": arguments.vectors,
        "pack.batch_size": arguments.batch,
        "train.common.steps": arguments.steps,
        "train.xtr": BASE["train"]["biencoder"],
    }
    if arguments.start:
        changes["train.common.learning_rate"] = 2e-5
        changes["start_models.model"] = fetched(arguments.start)
    workspace.set_params(BASE, changes)
    prepare_start(workspace, arguments.start, "transformer", seed)
    workspace.filter()
    for stage in ("cluster", "pack random"):
        workspace.run(stage)
    rows = []
    for kind in SCORES:
        workspace.set_params(BASE, changes | {"train.xtr.score": kind})
        rows += _measure(workspace, workspace.train("xtr", "random"), kind, seed)
    return rows


def _measure(workspace: Workspace, folder: Path, kind: str, seed: int) -> list[Row]:
    trained = read_json(workspace.folder / "results/train/trained.json", made_by="train")
    curve = read_tsv(workspace.folder / "results/train/trained.tsv", made_by="train")
    missed = float(np.mean([float(row["missed_positives"]) for row in curve]))
    model = load_token_model(folder, ModelInfo.read(folder).max_length)
    rows = []
    for name, collection in workspace.collections.items():
        documents = encode_tokens(model, [each.text for each in collection.documents], "document")
        queries = encode_tokens(model, [each.text for each in collection.queries], "query")
        index = TokenIndex.build(documents.vectors, documents.lengths, "")
        row: Row = {"collection": name, "score": kind, "steps": trained["steps"], "seed": seed}
        row |= {"last_loss": trained["last_loss"], "missed_positives": round(missed, 6)}
        row["ndcg@10 all"] = _ndcg(collection, _search_all(queries, documents))
        for tokens in TOKENS:
            row[f"ndcg@10 {tokens}"] = _ndcg(collection, search_tokens(index, queries, DEPTH, tokens)[0])
        found = [
            collect(similarities, index.owners_of(numbers))
            for similarities, numbers in index.retrieve(queries.vectors, queries.lengths, TOKENS[1])
        ]
        row["candidates 100"] = round(float(np.mean([len(each.documents) for each in found])), 1)
        row["imputed 100"] = round(float(np.mean([each.imputed_share for each in found])), 4)
        rows.append(row)
        print(*(f"{key} {value}" for key, value in row.items()), flush=True)
    return rows


def _ndcg(collection: Collection, ranked: NDArray[np.int64]) -> float:
    scored = score_queries(collection, ranked)
    return average(scored, scored)["ndcg@10"]


def _search_all(queries: TokenVectors, documents: TokenVectors) -> NDArray[np.int64]:
    """Documents ranked by the mean of maxima over all of their tokens."""
    with torch.no_grad():
        values = score(_padded(queries), _padded(documents), None).values
    return values.argsort(dim=1, descending=True, stable=True)[:, :DEPTH].numpy()


def _padded(texts: TokenVectors) -> Tokens:
    lengths = torch.from_numpy(texts.lengths)
    vectors = pad_sequence(list(torch.split(torch.from_numpy(texts.vectors), lengths.tolist())), batch_first=True)
    return Tokens(vectors, torch.arange(vectors.shape[1]) < lengths[:, None])


if __name__ == "__main__":
    main()
