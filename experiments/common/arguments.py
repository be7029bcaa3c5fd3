"""Arguments that experiments share."""

import argparse
from pathlib import Path

from batchwright.core.command import new_parser


def training_parser(program: str, about: str, example: str) -> argparse.ArgumentParser:
    """A parser for experiments that train on some domains of a data folder, once per seed, and write a table."""
    parser = new_parser(program, about, example)
    parser.add_argument("data", type=Path)
    parser.add_argument("--domains", nargs="+", required=True)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--output", type=Path)
    return parser


def pairs_parser(program: str, about: str, example: str) -> argparse.ArgumentParser:
    """A parser for experiments on Parquet files of pairs, with vectors of theirs, that write a table or folder."""
    parser = new_parser(program, about, example)
    parser.add_argument("data", type=Path, nargs="+")
    parser.add_argument("--vectors", type=Path, default=Path("vectors"), help="folder for the surrogate's vectors")
    parser.add_argument("--output", type=Path, required=True)
    return parser
