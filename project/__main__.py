"""The command ``batchwright``, or ``python -m project``: a table of commands, from which parser and help are made."""

import argparse
import json
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from batchwright.core.command import Command, failing, parse
from batchwright.core.errors import InputError
from batchwright.core.terminal import say
from batchwright.inspect.overview import ORDERS
from batchwright.inspect.terminal import plain
from batchwright.verify import verify
from project.batches import diff, export, show
from project.own import init, upgrade
from project.pipeline import run_stage

OURS = ("batchwright", "pipelines", "project", "stages", "trainers")
SHARDS = "a folder of shards, or its name in data/shards"
JSON = {"action": "store_true", "help": "print JSON"}

COMMANDS = {
    "init": Command(
        "Makes a project of your own: a git repository with the pipeline, your parameters, data and results.",
        ("batchwright init my-project",),
        init,
        {"folder": {"type": Path, "help": "a new folder"}},
    ),
    "add": Command(
        "Looks at a file or a folder of pairs, shows five of them, and writes it into params.yaml as a source.",
        (
            "batchwright add faq.csv",
            "batchwright add answers/ --query title --document body --domain support",
            "batchwright add https://example.com/faq.csv",
            "batchwright add hf://datasets/owner/name --split train",
            "batchwright add big.parquet --look      # changes nothing",
        ),
        "project.add.add:add",
        {
            "path": {
                "help": "Parquet, Arrow, JSON Lines, CSV or TSV, or a folder of them, or of BEIR's; the URL of such a "
                "file (https://, s3://), which DVC imports; or a dataset, hf://datasets/OWNER/NAME@REVISION",
            },
            "--query": {"metavar": "COLUMN", "help": "the column of queries, if its name does not say so"},
            "--document": {"metavar": "COLUMN", "help": "the column of documents that answer them"},
            "--negatives": {"metavar": "COLUMN", "nargs": "+", "help": "columns of hard negatives"},
            "--label": {"metavar": "COLUMN", "help": "the column that says which rows are pairs"},
            "--positive": {"metavar": "VALUE", "nargs": "+", "help": "the labels of rows that are pairs"},
            "--at-least": {"metavar": "NUMBER", "type": float, "help": "or the least score of rows that are pairs"},
            "--metadata": {"metavar": "COLUMN", "nargs": "+", "help": "columns to keep beside the pairs"},
            "--split-column": {"metavar": "COLUMN", "help": "the column that says each pair's split"},
            "--group": {
                "metavar": "COLUMN",
                "help": "the column of what stays in one split, as an article or a customer",
            },
            "--weight": {"metavar": "COLUMN", "help": "the column of the pairs' weights in the loss"},
            "--ignore": {"metavar": "COLUMN", "nargs": "+", "help": "columns that say nothing about the pairs"},
            "--no-header": {"action": "store_true", "help": "the first line of CSV is data; columns are 1, 2, 3, ..."},
            "--domain": {"metavar": "NAME", "help": "the domain of all pairs; by default, the file's name"},
            "--domain-column": {"metavar": "COLUMN", "help": "or the column that names each pair's domain"},
            "--split": {"metavar": "NAME", "help": "the split of a dataset or a BEIR folder, default: train"},
            "--config": {"metavar": "NAME", "help": "its configuration, if it has several"},
            "--look": {"action": "store_true", "help": "only look"},
        },
    ),
    "show": Command(
        "Shows batches: their texts, what is masked and why, the hardest negatives left, and what became of a query.",
        (
            "batchwright show                        # all batches at a glance",
            "batchwright show 12                     # batch 12",
            "batchwright show 12 --row 5             # its row 5, with every masked document",
            "batchwright show sort a list            # what became of the queries with these words",
            "batchwright show 0140e601               # or of the pair whose id begins so",
            "batchwright show --worst masked         # batches with the most masked negatives",
            "batchwright show 12 --shards random     # of data/shards/random, or of any folder of shards",
        ),
        show,
        {
            "what": {"nargs": "*", "help": "the number of a batch, words of a query, or the beginning of a pair's id"},
            "--row": {"type": int, "metavar": "N", "help": "show one row of the batch"},
            "--worst": {"choices": list(ORDERS), "help": "list the worst batches"},
            "--shards": {
                "default": "contextual",
                "metavar": "FOLDER",
                "help": f"{SHARDS}; default: contextual",
            },
            "--full": {"action": "store_true", "help": "show whole texts and lists"},
            "--json": JSON,
        },
    ),
    "diff": Command(
        "Compares two shard sets: parameters, pairs, who meets whom, and hardness and masks by domain.",
        (
            "batchwright diff random contextual      # of data/shards",
            "batchwright diff ../before/data/shards/contextual data/shards/contextual",
        ),
        diff,
        {"a": {"metavar": "A", "help": SHARDS}, "b": {"metavar": "B", "help": "another one"}, "--json": JSON},
    ),
    "export": Command(
        "Writes each pair of some shards once, with hard negatives and a teacher's scores, for other trainers, "
        "or negatives that somebody should judge.",
        (
            "batchwright export data/shards/contextual pairs.parquet",
            "batchwright export data/shards/mined-1 pairs.jsonl --negatives 4",
            "batchwright export data/shards/mined-1 pairs.jsonl --format flagembedding",
            "batchwright export contextual raw/judgements/doubtful.jsonl --doubtful",
        ),
        export,
        {
            "shards": {"help": SHARDS},
            "output": {"type": Path, "help": "a .parquet or .jsonl file"},
            "--negatives": {
                "type": int,
                "metavar": "N",
                "help": "leave out pairs with fewer hard negatives, cut the rest to N; default: the most of any pair",
            },
            "--metadata": {"action": "store_true", "help": "write the columns of columns.metadata, too"},
            "--format": {
                "dest": "file_format",
                "choices": ["pairs", "flagembedding", "tevatron"],
                "default": "pairs",
                "help": "pairs: columns anchor, positive, negative_1, ..., scores; or what FlagEmbedding or Tevatron "
                "reads, with all negatives that a pair has in its first batch by default",
            },
            "--doubtful": {
                "action": "store_true",
                "help": "write cells to judge instead: the hardest negatives, those masked by a hair, and mined ones",
            },
            "--most": {"type": int, "metavar": "N", "help": "so many of each kind and domain, default: 100"},
        },
    ),
    "verify": Command(
        "Compares artifacts with the checksums that were written when they were made, and names what is damaged.",
        ("batchwright verify", "batchwright verify data/shards/contextual", "batchwright verify --mend"),
        verify,
        {
            "artifact": {
                "type": Path,
                "nargs": "?",
                "help": "a folder or file; all outputs of the stages by default",
            },
            "--mend": {"action": "store_true", "help": "remove what is damaged, so that dvc repro makes it again"},
        },
    ),
    "retrain": Command(
        "Trains again on what came since, and publishes the models if they are not worse than the deployed ones.",
        ("batchwright retrain     # exit code 0: promoted, 1: failed, 3: nothing new, 4: rejected",),
        "project.retrain.retrain:retrain",
        {"--hours": {"type": float, "metavar": "N", "help": "stop after so long; the next call goes on"}},
    ),
    "promote": Command(
        "Deploys the current commit, or an earlier promotion: moves the branch that production follows.",
        ("batchwright promote", "batchwright promote promoted-3"),
        "project.retrain.publish:promote",
        {"name": {"nargs": "?", "help": "an earlier promotion, a tag such as promoted-3"}},
    ),
    "rollback": Command(
        "Deploys the promotion before the present one. The next retraining does not promote the same again.",
        ("batchwright rollback",),
        "project.retrain.publish:roll_back",
    ),
    "stage": Command(
        "Runs a stage of the pipeline; dvc repro does so for all stages that something changed for.",
        ("batchwright stage check", "batchwright stage train biencoder"),
        run_stage,
        {
            "name": {"help": "a stage of dvc.yaml, or check, which checks params.yaml before any"},
            "arguments": {"nargs": argparse.REMAINDER, "help": "what the stage takes: a policy, a run, ..."},
        },
    ),
    "upgrade": Command(
        "Brings a project up to date with the installed Batchwright, and says which stages that changes.",
        ("pip install --upgrade 'batchwright[pipeline] @ git+URL' && batchwright upgrade",),
        upgrade,
    ),
}

STYLED = ("show", "diff")
"""Commands that lay out their answers for a terminal, with colours and without any control character of the data."""


def _version() -> str:
    """Return what is installed: its version, and its commit if it was installed from git."""
    try:
        found = distribution("batchwright")
    except PackageNotFoundError:
        return "batchwright, not installed"
    origin = json.loads(found.read_text("direct_url.json") or "{}").get("vcs_info", {})
    return f"batchwright {found.version}" + (f", commit {origin['commit_id']}" if "commit_id" in origin else "")


def main(line: Sequence[str] | None = None) -> None:
    """Run the command that ``line`` names, by default that of the process."""
    about = "Makes training batches that are hard and honest, looks into them, and hands them on."
    name, values = parse("batchwright", about, COMMANDS, line, _version())
    with failing(f"batchwright {name}"):
        try:
            text = COMMANDS[name](**values)
        except ModuleNotFoundError as error:  # show, diff, export and verify need no more than the library
            if (error.name or "").partition(".")[0] in OURS:
                raise
            raise InputError(f"'{error.name}' is not installed; run: pip install 'batchwright[pipeline]'") from None
        say(text if name in STYLED else "\n".join(map(plain, text.split("\n"))))


if __name__ == "__main__":
    main()
