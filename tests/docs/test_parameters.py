"""The schema and the reference of ``params.yaml`` match the code."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from docs.parameters import contents
from docs.schema import TrainParams, schema
from tests.helpers import REPO
from tests.profiles import NAMES, composed
from trainers.variants import VARIANTS, load_variant

VALIDATOR = Draft202012Validator(schema())


@pytest.mark.parametrize("file", contents(), ids=lambda file: file.name)
def test_committed_files_match_the_code(file: Path) -> None:
    assert file.read_text(encoding="utf-8") == contents()[file], "run python -m docs.parameters"


def test_the_schema_is_valid() -> None:
    Draft202012Validator.check_schema(schema())


def test_every_field_has_a_description() -> None:
    assert [name for name, field in _fields() if not field.get("description", "").endswith(".")] == []


def _fields() -> Iterator[tuple[str, dict[str, Any]]]:
    found = schema()
    for model, group in [("params.yaml", found), *found["$defs"].items()]:
        yield from ((f"{model}: {name}", field) for name, field in group["properties"].items())


def test_every_variant_is_in_the_schema() -> None:
    fields = {name: field.annotation for name, field in TrainParams.model_fields.items() if name != "common"}
    assert fields == {variant: load_variant(variant).Params | None for variant in VARIANTS}


@pytest.mark.parametrize("name", NAMES)
def test_committed_parameters_are_valid(name: str) -> None:
    assert [error.message for error in VALIDATOR.iter_errors(composed(name))] == []


@pytest.mark.parametrize("place", ["", "filter", "embed.models.tfidf", "start_models.minilm", "train.xtr", "runs.cde"])
def test_a_misspelt_key_is_not_valid(place: str) -> None:
    params = _default()
    group = params
    for name in place.split(".") if place else []:
        group = group[name]
    group["xyzzy"] = 1
    assert not VALIDATOR.is_valid(params)


@pytest.mark.parametrize("group", ["base", "start_models", "train", "tokens"])
def test_a_missing_group_is_not_valid(group: str) -> None:
    params = _default()
    del params[group]
    assert not VALIDATOR.is_valid(params)


def test_only_the_variants_in_use_need_their_groups() -> None:
    params = _default()
    del params["train"]["xtr"]
    assert VALIDATOR.is_valid(params)


def _default() -> dict[str, Any]:
    values: dict[str, Any] = yaml.safe_load((REPO / "params.yaml").read_text(encoding="utf-8"))
    return values
