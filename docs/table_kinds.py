"""The kinds of tables that pages show, each made from the files of a result."""

import math
import re
import statistics
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from batchwright.core.files import read_tsv
from experiments.rivals import BASELINE, SEEN
from stages.report.scores import read_differences
from stages.report.sections.results import differences_table
from stages.report.table import share, signed

OURS = "ours"
"""Our batches and loss."""
PLAIN = ("random, temperature .05", BASELINE)
BRINGS = ("random, our loss", "ours, InfoNCE", OURS, "ours, untuned")
"""What README shows: what one gets without us, untuned and tuned, and what each of ours gains over tuned."""
KINDS_OF_MODELS = {
    "static": "static, from scratch",
    "transformer": "two-layer BERT, from scratch",
    "minilm": "MiniLM, fine-tuned",
}
MASKED_WAYS = ("random", "random, our loss", "ours, InfoNCE", "ours")
"""Ways that are tried with several masks; the names of their arms begin with them."""
MASK_RULES = {
    "own - .05": "f(q, d') >= f(q, d) - .05",
    "likeness .8": "likeness .8",
    "auto": "`likeness: auto`",
}
"""The rules that the page shows, and what it calls them."""
KNOWN_SETS = ("banking77", "perspectrum", "cranfield")
READ_SETS = {
    **{name: (name,) for name in ("finance_10k", "policyqa")},
    "five others": ("squad", "medquad", "nl2bash", "tldr_pages", "torch"),
}
_REFERENCE = "reference"
_BATCHES = 20
"""Data sets with fewer batches are left out of the medians."""
Row = dict[str, str]
Lines = list[list[str]]
"""A table: its header, then its rows."""


def read_files(files: Sequence[Path]) -> list[Row]:
    """The rows of all files."""
    return [row for file in files for row in read_tsv(file, made_by=file.stem)]


def rows_table(files: Sequence[Path]) -> Lines:
    """All rows of the files, with long numbers rounded."""
    rows = read_files(files)
    return [list(rows[0]), *([_plain(cell) for cell in row.values()] for row in rows)]


def _plain(cell: str) -> str:
    number = re.fullmatch(r"-?\d+\.\d+(e[-+]?\d+)?", cell)  # words and differences may have a point too
    return str(round(float(cell), 4) + 0.0) if number else cell  # + 0.0: no -0.0


def gains_table(files: Sequence[Path]) -> Lines:
    """One row per run: how many seeds, and what it gains over its references, as in the report."""
    (file,) = files
    table = differences_table(read_differences(file))
    groups = [group for group, span in table.groups or [] for _ in range(span)]
    several = len(set(groups)) > 2
    names = [
        f"{group}, {name}" if several and group else name for group, name in zip(groups, table.header, strict=True)
    ]
    return [["", *names[1:]], *table.rows]


def rivals_table(files: Sequence[Path]) -> Lines:
    """One row per set, the one with the largest gain of ours first; one column per way that was tried on all sets.

    A cell is the difference in nDCG@10 to random batches for the same steps. Last come the shares of the steps after
    which our batches reach where random ones end, or "never", and after which random ones first do so themselves. The
    last row has means over sets, and the medians of these shares.
    """
    rows = read_files(files)
    cells = {(row["set"], row["arm"]): row for row in rows}
    sets = sorted({name for name, _ in cells}, key=lambda name: (-_number(cells[name, OURS]["gain"]), name))
    ways = [arm for arm in dict.fromkeys(arm for _, arm in cells) if all((name, arm) in cells for name in sets)]
    gains = {way: [cells[name, way]["gain"] for name in sets] for way in ways if way != BASELINE}
    order = sorted(gains, key=lambda way: -statistics.mean(map(_number, gains[way])))
    random = [float(cells[name, BASELINE]["ndcg"]) for name in sets]
    reached = {way: [float(cells[name, way]["reached"]) for name in sets] for way in (OURS, BASELINE)}
    return [
        ["set", BASELINE, *order, "ours after", "random after"],
        *(
            [
                name,
                share(ndcg),
                *(gains[way][place] for way in order),
                *(_reached(of[place]) for of in reached.values()),
            ]
            for place, (name, ndcg) in enumerate(zip(sets, random, strict=True))
        ),
        [
            *("mean", share(statistics.mean(random)), *(_mean_gain(gains[way]) for way in order)),
            *(f"median {_reached(statistics.median(of))}" for of in reached.values()),
        ],
    ]


def brings_table(files: Sequence[Path]) -> Lines:
    """One row per kind of model: what each of ``BRINGS`` gains, in the mean over the sets on which ours was tried.

    Those of ``PLAIN`` have their nDCG@10. A way that was not tried on all of these sets has an empty cell. Last comes
    on how many sets ours are ahead.
    """
    cells = {(row["kind"], row["arm"], row["set"]): row for row in read_files(files)}
    lines = [["nDCG@10, means", "sets", *PLAIN, *BRINGS, f"{OURS} ahead on"]]
    for kind in dict.fromkeys(kind for kind, _, _ in cells):
        sets = [name for of, arm, name in cells if (of, arm) == (kind, OURS)]
        line = [KINDS_OF_MODELS[kind], str(len(sets))]
        for way in (*PLAIN, *BRINGS):
            tried = [cells[kind, way, name] for name in sets if (kind, way, name) in cells]
            if len(tried) < len(sets):
                line.append("")
            elif way in PLAIN:
                line.append(share(statistics.mean(float(row["ndcg"]) for row in tried)))
            else:
                line.append(_mean_gain([row["gain"] for row in tried]))
        ahead = sum(_number(cells[kind, OURS, name]["gain"]) > 0 for name in sets)
        lines.append([*line, f"{ahead} of {len(sets)}"])
    return lines


def ways_table(files: Sequence[Path], ways: Sequence[str] = ()) -> Lines:
    """One row per way, all or the named ones, the largest mean gain first; one column per set that all were tried on.

    Cells are gains over random batches, whose own nDCG@10 comes first.
    """
    cells = {(row["arm"], row["set"]): row for row in read_files(files)}
    shown = [way for way in dict.fromkeys(ways or (arm for arm, _ in cells)) if way != BASELINE]
    tried = dict.fromkeys(name for _, name in cells)
    sets = [name for name in tried if all((way, name) in cells for way in (BASELINE, *shown))]
    gains = {way: [cells[way, name]["gain"] for name in sets] for way in shown}
    order = sorted(gains, key=lambda way: -statistics.mean(map(_number, gains[way])))
    random = [share(float(cells[BASELINE, name]["ndcg"])) for name in sets]
    return [["", *sets], [f"{BASELINE}, nDCG@10", *random], *([way, *gains[way]] for way in order)]


def seen_table(files: Sequence[Path], ways: Sequence[str]) -> Lines:
    """One row per named way: its mean gain over random batches on the sets of both files.

    First where training documents are searched, too, then where they are not.
    """
    seen, unseen = (
        {(row["arm"], row["set"].removesuffix(SEEN)): row["gain"] for row in read_files([file]) if row["gain"]}
        for file in files
    )
    lines = [["mean gain over random batches", "sets", "training documents searched, too", "not searched"]]
    for way in ways:
        sets = sorted(name for arm, name in seen.keys() & unseen.keys() if arm == way)
        means = (_mean_gain([gains[way, name] for name in sets]) for gains in (seen, unseen))
        lines.append([way, str(len(sets)), *means])
    return lines


def masked_ways_table(files: Sequence[Path]) -> Lines:
    """One row per set and masks, the largest mean gain first, and a column for each of ``MASKED_WAYS``.

    Cells are gains over random batches that mask known positives, whose own nDCG@10 stands in their place.
    """
    cells: dict[str, dict[str, dict[str, str]]] = defaultdict(lambda: defaultdict(dict))
    for row in read_files(files):
        arm = row["arm"]
        way = max((way for way in MASKED_WAYS if f"{arm}, ".startswith(f"{way}, ")), key=len)
        masks = arm.removeprefix(way).removeprefix(", ") or "known positives"
        cells[row["set"]][masks][way] = row["gain"] or share(float(row["ndcg"]))
    lines = [["", *MASKED_WAYS]]
    for name, by_masks in cells.items():
        means = {masks: statistics.mean(map(_number, of.values())) for masks, of in by_masks.items()}
        del means["known positives"]
        order = ["known positives", *sorted(means, key=lambda masks: -means[masks])]
        lines += [[f"{name}: {masks}", *(by_masks[masks].get(way, "") for way in MASKED_WAYS)] for masks in order]
    return lines


def _number(gain: str) -> float:
    return float(gain.split()[0])


def _mean_gain(gains: Sequence[str]) -> str:
    """The mean over sets, with its standard error over sets: how far other sets might have another. Of one set, its own
    gain, with its error over queries and seeds."""
    if len(gains) == 1:
        return gains[0]
    means = list(map(_number, gains))
    return signed(statistics.mean(means), statistics.stdev(means) / math.sqrt(len(means)))


def _reached(part: float) -> str:
    return "never" if math.isinf(part) else f"{part:.2f}"


def masks_table(files: Sequence[Path]) -> Lines:
    """One row per rule: precision and recall where the truth is known; how many masked cells, read by eye, are right,
    partly, and wrong.

    Of a second file, the last rule.
    """
    first, *further = ({(row["set"], row["rule"]): row for row in read_files([file])} for file in files)
    rules = [(first, rule, label) for rule, label in MASK_RULES.items()]
    last, label_of_last = list(MASK_RULES.items())[-1]
    rules += [(other, last, f"{label_of_last}, TF-IDF") for other in further]
    lines = [["", *KNOWN_SETS, *READ_SETS]]
    for by_set, rule, label in rules:
        known = [_precision_and_recall(by_set[name, rule]) for name in KNOWN_SETS]
        read = [_verdicts([by_set[name, rule] for name in names]) for names in READ_SETS.values()]
        lines.append([label, *known, *read])
    return lines


def _verdicts(rows: Sequence[Row]) -> str:
    return ", ".join(str(sum(int(row[verdict]) for row in rows)) for verdict in ("yes", "partly", "no"))


def _precision_and_recall(row: Row) -> str:
    return f"{share(float(row['precision']))}, {share(float(row['recall']))}"


def batches_table(files: Sequence[Path]) -> Lines:
    """One row per method, one column per batch size: medians over data sets of ratios to the reference."""
    rows = read_files(files)
    sizes = list(dict.fromkeys(row["batch"] for row in rows))
    header = ["unmasked hardness; time, of the reference's", *(f"batches of {size}" for size in sizes)]
    methods = dict.fromkeys(row["method"] for row in rows)
    return [header, *([method, *(_over_reference(rows, method, size) for size in sizes)] for method in methods)]


def _over_reference(rows: Sequence[Row], method: str, size: str) -> str:
    """Hardness and time of a method relative to the reference."""
    references = {row["data"]: row for row in rows if (row["method"], row["batch"]) == (_REFERENCE, size)}
    own = [row for row in rows if (row["method"], row["batch"]) == (method, size) and int(row["batches"]) >= _BATCHES]
    harder, slower = (
        [float(row[name]) / float(references[row["data"]][name]) for row in own] for name in ("unmasked", "seconds")
    )
    hardness = f"{statistics.median(harder):.2f} ({min(harder):.2f} to {max(harder):.2f})"
    return f"{hardness}; {share(statistics.median(slower))}"


def scores_table(files: Sequence[Path]) -> Lines:
    """One row per way to score, one column per batch size: seconds and memory."""
    rows = read_files(files)
    sizes = list(dict.fromkeys(row["batch"] for row in rows))
    lines = [["processor time; peak memory", *(f"batches of {size}" for size in sizes)]]
    for way in dict.fromkeys(row["way"] for row in rows):
        by_size = {
            row["batch"]: f"{float(row['seconds']):.2f} s; {row['mib']} MiB" for row in rows if row["way"] == way
        }
        lines.append([way, *(by_size.get(size, "") for size in sizes)])
    return lines


def scale_table(files: Sequence[Path]) -> Lines:
    """One row per stage and one for all, one column per number of pairs and cores: seconds and the most memory."""
    rows = read_files(files)
    sizes = list(dict.fromkeys((row["pairs"], row["cores"]) for row in rows))
    lines = [
        [
            "seconds; MiB",
            *(f"{int(pairs):,} pairs, {cores} {'core' if cores == '1' else 'cores'}" for pairs, cores in sizes),
        ]
    ]
    for stage in [*dict.fromkeys(row["stage"] for row in rows), "all"]:
        own = [row for row in rows if stage in (row["stage"], "all")]
        lines.append([stage, *(_sums([row for row in own if (row["pairs"], row["cores"]) == size]) for size in sizes)])
    return lines


def _sums(rows: Sequence[Row]) -> str:
    return f"{sum(float(row['seconds']) for row in rows):.0f}; {max(int(row['mib']) for row in rows):,}"
