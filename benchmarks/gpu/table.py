"""The table of results, written anew after each."""

from dataclasses import asdict, dataclass
from pathlib import Path

from batchwright.core.files import write_tsv


@dataclass(frozen=True)
class Result:
    """A figure; ``aim`` says what it should be, if anything."""

    part: str
    setting: str
    measure: str
    value: float | int | str
    aim: str = ""


class Table:
    """Prints results as they come, and keeps them in ``file``, with the name of the ``card``."""

    def __init__(self, file: Path, card: str) -> None:
        self._file, self._card = file, card
        self._rows: list[dict[str, float | int | str]] = []

    def add(self, result: Result) -> None:
        """Print and write a result."""
        self._rows.append({"card": self._card, **asdict(result)})
        write_tsv(self._file, self._rows)
        value = f"{result.value:.4g}" if isinstance(result.value, float) else str(result.value)
        aim = f" (aim: {result.aim})" if result.aim else ""
        print(f"{result.part}, {result.setting}: {result.measure} {value}{aim}", flush=True)
