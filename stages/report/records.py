"""Read results as typed records."""

from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from batchwright.core.errors import InputError
from batchwright.core.files import read_json, read_tsv

T = TypeVar("T")


class Record(BaseModel):
    """The fields of a result that the report needs; others are ignored."""

    model_config = ConfigDict(frozen=True)


def read_record(kind: type[T], file: Path, made_by: str) -> T:
    """Read a JSON result as ``kind``; raise InputError if it is missing or malformed."""
    return _validate(kind, read_json(file, made_by), file, made_by)


def read_rows(kind: type[T], file: Path, made_by: str) -> list[T]:
    """Read the rows of a TSV result as ``kind``; raise InputError if it is missing or malformed."""
    return _validate(list[kind], read_tsv(file, made_by), file, made_by)  # type: ignore[valid-type]


def _validate(kind: type[T], values: Any, file: Path, made_by: str) -> T:
    try:
        return TypeAdapter(kind).validate_python(values)
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(str(part) for part in fault["loc"])
        raise InputError(f"{file}, at {where}: {fault['msg']}; run the stage '{made_by}' again") from None
