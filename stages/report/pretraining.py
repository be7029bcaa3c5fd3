"""How pre-training went: ``results/pretrain/VARIANT*.tsv`` and their charts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from stages.report import charts
from stages.report.records import Record, read_rows


class Validation(Record):
    """Means on held-out text, in nats a token; what only a decoder has is 0 where there is none."""

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


@dataclass(frozen=True, kw_only=True)
class Pretraining:
    """The curves of one pre-training; ``positions`` is empty where there was no decoder."""

    validations: list[Validation]
    lengths: list[AtLength]
    positions: list[AtPosition]


def read_pretraining(folder: Path, variant: str) -> Pretraining:
    """The curves of a variant's pre-training."""
    return Pretraining(
        validations=read_rows(Validation, folder / f"{variant}-validation.tsv", made_by="pretrain"),
        lengths=read_rows(AtLength, folder / f"{variant}-length.tsv", made_by="pretrain"),
        positions=read_rows(AtPosition, folder / f"{variant}-position.tsv", made_by="pretrain"),
    )


def draw_pretraining(curves: Pretraining) -> dict[str, Markup]:
    """Charts by title; what only a decoder has is left out where there is none."""
    steps = [row.step for row in curves.validations]
    losses = {"encoder (MLM)": [row.mlm for row in curves.validations]}
    if curves.positions:
        losses["decoder"] = [row.decoder for row in curves.validations]
    drawn = {"Loss on held-out text, nats a token": _lines("step", steps, losses)}
    if curves.positions:
        gap = {"h0 gap": [row.h0_gap for row in curves.validations]}
        drawn["h0 gap, nats a token"] = _lines("step", steps, gap)
    lengths = [row.length for row in curves.lengths]
    drawn["Cosine of two random texts"] = _lines("tokens", lengths, {"mean": [row.cosine for row in curves.lengths]})
    if curves.positions:
        places = [row.position for row in curves.positions]
        cosines = {"mean": [row.cosine for row in curves.positions]}
        drawn["Cosine of CLS and decoder state"] = _lines("position", places, cosines)
    return drawn


def _lines(across: str, places: Sequence[int], series: Mapping[str, Sequence[float]]) -> Markup:
    return charts.lines({name: (places, values) for name, values in series.items()}, across, " and ".join(series))
