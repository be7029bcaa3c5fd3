"""What is said of values before the first stage is what the stages would say, since both ask pydantic."""

import copy
import json
from collections.abc import Iterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from batchwright.core.params import read_params
from docs.schema import AllParams
from stages.params.check import SCHEMA
from stages.params.keys import of_keys
from tests.faults.parameters import MORE
from tests.helpers import REPO

SCHEMA_OF_ALL = json.loads(SCHEMA.read_bytes())
WHOLE = read_params(REPO / "params.yaml") | MORE
WHOLE["ingest"]["sources"][0]["kind"] = "docstrings"  # without it, only the stage knows which source is meant
WHOLE["filter"] |= {"likeness": {"python": 0.5}, "mine": {"count": 4}}
WHOLE["train"]["common"] |= {"dimensions": {64: 1.0}, "distill": {"loss": "kl"}, "lora": {"targets": ["query"]}}
WHOLE["pretrain"] = {"small": {"encoder": {"kind": "new", "vocab_size": 512}, "decoder": {"window": 2}}}
VALUES = st.one_of(
    st.sampled_from([-1, 0, 1, 2, 1e9, 0.5, "1e-3", "0.5", "12", "auto", "", "a", "bert", [], ["a"], [1]]),
    st.sampled_from([{"8": 1}, True, False, "yes", "float32", "domain", float("inf"), float("nan"), [None], None]),
)


def places(values: Any) -> Iterator[list[Any]]:
    """Yield the keys that lead to every value."""
    if isinstance(values, dict | list):
        for key, inner in values.items() if isinstance(values, dict) else enumerate(values):
            yield [key]
            yield from ([key, *keys] for keys in places(inner))


PLACES = list(places(WHOLE))


@given(st.sampled_from(PLACES), VALUES)
def test_a_value_is_refused_before_the_first_stage_if_its_stage_refuses_it(place: list[Any], value: Any) -> None:
    params = copy.deepcopy(WHOLE)
    *keys, last = place
    group = params
    for key in keys:
        group = group[key]
    if value is None and len(place) <= 2:
        return  # a group of which nothing is set
    group[last] = value
    lines = list(of_keys(params, SCHEMA_OF_ALL))
    try:
        AllParams.model_validate(params)
    except ValidationError as error:
        told_by_the_stage = {"value_error", "assertion_error"}
        assert lines or {detail["type"] for detail in error.errors()} <= told_by_the_stage, error
    else:
        assert not lines
