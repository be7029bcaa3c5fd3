"""The record of a night: ``retrain.json`` in the commit that promotes or rejects its models, for the nights after."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from scipy import stats

from batchwright.core.files import write_json
from batchwright.core.fingerprint import fingerprint
from project.retrain.drift import Figures
from project.retrain.repository import RECORD, locked, locked_now, show
from stages.scoring.paired import Estimate

_DIGITS = 6


class Since(NamedTuple):
    """What a model has gained since its reference: the sum of its changes, night by night.

    The ``error`` is the largest of a night. It is not added up: each night's change ends where the next one begins, so
    that chance in between cancels out.
    """

    nights: int
    total: float
    error: float

    def then(self, change: Estimate) -> "Since":
        """After another night; one with too few queries to tell changes nothing."""
        if math.isnan(change.error):
            return self._replace(nights=self.nights + 1)
        return Since(self.nights + 1, self.total + change.mean, max(self.error, change.error))

    def estimate(self) -> Estimate:
        """The sum, with the p value of the hypothesis that it is chance."""
        p = 2 * float(stats.norm.sf(abs(self.total) / self.error)) if self.error else float(not self.total)
        return Estimate(self.total, self.error, p)

    def kept(self, significance: float) -> "Since":
        """As the next night takes it: a gain that is no chance counts as far as it might be."""
        most = float(stats.norm.isf(significance / 2)) * self.error
        return Since(self.nights, round(min(self.total, most), _DIGITS), round(self.error, _DIGITS))


START = Since(0, 0.0, 0.0)
"""What the reference itself has gained."""


class Record(NamedTuple):
    """What was judged, and by what: the fingerprint of ``dvc.lock``, the deployed commit, the limits.

    ``data`` are the figures of the night's data. ``since`` has the models that passed; if a person promotes others,
    they are a reference.
    """

    lock: str
    deployed: str | None
    limits: Mapping[str, Any]
    data: Figures
    since: Mapping[str, Since] = {}

    @classmethod
    def of(cls, commit: str | None) -> "Record | None":
        """Return the record of a commit, or None if it has none, or that of an earlier one."""
        try:
            values = json.loads(show(commit, RECORD) or "null")
            since = {model: Since(**gained) for model, gained in values.pop("since").items()}
            record = cls(**values, since=since)
        except (ValueError, TypeError, AttributeError, KeyError):  # none, or one that another version wrote
            return None
        return record if record.lock == fingerprint(locked(commit)) else None

    @classmethod
    def of_tonight(cls, deployed: str | None, limits: Mapping[str, Any], data: Figures) -> "Record":
        """Return what is to be judged now."""
        return cls(fingerprint(locked_now()), deployed, limits, data)

    def asks_the_same_as(self, other: "Record | None") -> bool:
        """Whether the same was judged by the same limits."""
        return other is not None and self[:3] == other[:3]

    def write(self) -> None:
        """Write the file."""
        since = {model: gained._asdict() for model, gained in self.since.items()}
        write_json(Path(RECORD), {**self._asdict(), "since": since})
