"""Pre-training: whether the pre-trained encoders learnt what they should."""

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from batchwright.core.params import load_params
from batchwright.core.paths import RESULTS
from stages.report import charts
from stages.report.params import Loop
from stages.report.records import Record, read_rows
from stages.report.section import Section, show_charts

_FOLDER = RESULTS / "pretrain"


class Validation(Record):
    """Means on held-out text, in nats per token; without a decoder, ``decoder`` and ``h0_gap`` are 0."""

    step: int
    mlm: float
    decoder: float = 0
    h0_gap: float = 0


class AtLength(Record):
    """Mean cosine of the CLS states of two random sequences of this many tokens."""

    length: int
    cosine: float


class AtPosition(Record):
    """Mean cosine of the CLS state and the decoder's state at a position."""

    position: int
    cosine: float


def section() -> Section | None:
    """Return charts of every pre-training."""
    names = load_params("pretrain", Loop).root
    if not names:
        return None
    return Section(
        id="pretraining",
        title="Pre-training",
        intro="The h0 gap is how much the decoder's loss grows if every text gets another text's CLS state. As long as "
        "it is 0, the decoder has not learnt to read that state. If random texts are close to each other, search "
        "cannot tell them apart.",
        parts=[show_charts(_charts(name), heading=name) for name in names],
    )


def read_validations(name: str) -> list[Validation]:
    """Read the validations of a pre-training."""
    return read_rows(Validation, _FOLDER / f"{name}-validation.tsv", made_by="pretrain")


def _charts(name: str) -> dict[str, Markup]:
    """Return charts by title, without those of the decoder if there was none."""
    validations = read_validations(name)
    lengths = read_rows(AtLength, _FOLDER / f"{name}-length.tsv", made_by="pretrain")
    positions = read_rows(AtPosition, _FOLDER / f"{name}-position.tsv", made_by="pretrain")
    steps = [row.step for row in validations]
    mlm = {"encoder (MLM)": [row.mlm for row in validations]}
    decoder = {"decoder": [row.decoder for row in validations]} if positions else {}
    drawn = {"Loss on held-out text, nats per token": _lines(name, "step", steps, mlm | decoder)}
    if positions:
        gap = {"h0 gap": [row.h0_gap for row in validations]}
        drawn["h0 gap, nats per token"] = _lines(name, "step", steps, gap)
    cosines = {"mean": [row.cosine for row in lengths]}
    drawn["Cosine of two random texts"] = _lines(name, "tokens", [row.length for row in lengths], cosines)
    if positions:
        cosines = {"mean": [row.cosine for row in positions]}
        places = [row.position for row in positions]
        drawn["Cosine of CLS and decoder state"] = _lines(name, "position", places, cosines)
    return drawn


def _lines(name: str, across: str, places: Sequence[int], series: Mapping[str, Sequence[float]]) -> Markup:
    curves = {label: (places, values) for label, values in series.items()}
    return charts.lines(curves, across, f"{' and '.join(series)} in pre-training {name}")
