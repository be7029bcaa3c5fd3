"""``python -m stages.train VARIANT``: packed batches to a trained model."""

import argparse
from pathlib import Path

from formats.manifest import Manifest
from formats.params import Base, load_params
from formats.results import read_tsv, write_json
from stages.entry import run
from stages.train.summary import summarise
from trainers.job import plan_job
from trainers.launch import launch
from trainers.params import Common
from trainers.variants import load_variant

SHARDS = Path("data/shards")
MODELS = Path("models")
RESULTS = Path("results/train")
DEFAULT_BATCHES = "contextual"


def main() -> str:
    """Write ``models/NAME`` and ``results/train/NAME.{tsv,json}``; NAME is the variant, with other batches' name."""
    arguments = _parse()
    name = arguments.variant + ("" if arguments.batches == DEFAULT_BATCHES else f"-{arguments.batches}")
    shards = SHARDS / arguments.batches
    curve = RESULTS / f"{name}.tsv"
    variant = load_variant(arguments.variant)
    common = load_params("train.common", Common)
    params = load_params(f"train.{arguments.variant}", variant.Params)
    if arguments.hard_negatives is not None:
        common = common.model_copy(update={"hard_negatives": arguments.hard_negatives})
    if arguments.start is not None:
        params = params.model_copy(update={"model": arguments.start, "revision": None})
    job = plan_job(
        variant=arguments.variant,
        seed=load_params("base", Base).seed,
        common=common,
        params=params,
        shards=shards,
        model=MODELS / name,
        curve=curve,
    )
    launch(job, variant.train)
    summary = summarise(read_tsv(curve, made_by="train"), Manifest.read(shards).batch_size)
    write_json(RESULTS / f"{name}.json", summary)
    return (
        f"{name}: {summary['steps']:,} steps, {summary['pairs']:,} pairs, "
        f"loss {summary['first_loss']:.4f} -> {summary['last_loss']:.4f}"
    )


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m stages.train", description="Train a variant on packed batches.")
    parser.add_argument("variant", help="which kind of model, for example biencoder")
    parser.add_argument("--batches", default=DEFAULT_BATCHES, help="a folder in data/shards: a policy or a round")
    parser.add_argument("--start", metavar="FOLDER", help="the model to start from, instead of the variant's")
    parser.add_argument("--hard-negatives", type=int, metavar="N", help="instead of train.common.hard_negatives")
    return parser.parse_args()


if __name__ == "__main__":
    run("train", main)
