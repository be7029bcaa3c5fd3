"""Time that finding the duplicates of real texts takes, on one thread.

``python -m benchmarks.duplicates FILE ... [--runs 3]``, Parquet files with columns ``query`` and ``document``

Prints microseconds of processor time for each pair of a file, the least of several runs, and how many texts are left.
"""

import time
from pathlib import Path

import pyarrow.parquet as pq

from batchwright.core.command import new_parser
from stages.filter.classes import duplicate_classes

NEAR_DUPLICATES = 0.9


def main() -> None:
    """Measure each file."""
    parser = new_parser("benchmarks.duplicates", str(__doc__), "python -m benchmarks.duplicates pairs/medquad.parquet")
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    for file in arguments.files:
        table = pq.read_table(file, columns=["query", "document"])
        sides = [column.to_pylist() for column in table.columns]
        seconds, different = zip(*(measure(sides) for _ in range(arguments.runs)), strict=True)
        queries, documents = different[0]
        letters = sum(map(len, sides[1])) // max(len(table), 1)
        print(
            f"{file.stem}: {len(table):,} pairs, documents of {letters:,} characters, "
            f"{1e6 * min(seconds) / max(len(table), 1):.0f} us a pair, "
            f"{queries:,} queries and {documents:,} documents differ",
            flush=True,
        )


def measure(sides: list[list[str]]) -> tuple[float, list[int]]:
    """Return the seconds of processor time that the classes of both sides take, and how many each side has."""
    start = time.process_time()
    classes = [duplicate_classes([texts], NEAR_DUPLICATES) for texts in sides]
    return time.process_time() - start, [int(each.max(initial=-1)) + 1 for each in classes]


if __name__ == "__main__":
    main()
