"""Errors in params.yaml name the faulty key and suggest the closest known one."""

from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import RootModel

from batchwright.core.errors import InputError
from batchwright.core.params import Base, Params, load_params
from batchwright.formats.models import Prefix, Prefixes


class Inner(Params):
    depth: int = 1


class Group(Params):
    batch_size: int
    rate: float = 0.5
    inner: Inner = Inner()
    named: dict[str, Inner] = {}
    shares: list[float] | Literal["auto"] = "auto"
    limits: dict[str, float | None] | None = None
    near: bool | int = 0


def load(folder: Path, text: str, group: str = "group") -> Group:
    file = folder / "params.yaml"
    file.write_text(text)
    return load_params(group, Group, file)


def test_values_are_read_and_defaults_fill_in_the_rest(tmp_path: Path) -> None:
    assert load(tmp_path, "group: {batch_size: 3, near: yes}") == Group(batch_size=3, near=True)


def test_a_seed_is_one_that_every_library_takes(tmp_path: Path) -> None:
    for seed in (-1, 2**32):
        (tmp_path / "params.yaml").write_text(f"base: {{seed: {seed}}}")
        with pytest.raises(InputError, match=r"parameter 'base\.seed': Input should be"):
            load_params("base", Base, tmp_path / "params.yaml")


def test_a_nested_group_is_named_with_dots(tmp_path: Path) -> None:
    assert load(tmp_path, "train: {biencoder: {batch_size: 3}}", "train.biencoder").batch_size == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("group: {batch_sise: 3, batch_size: 3}", r"unknown parameter 'group.batch_sise'; did you mean 'batch_size'\?"),
        ("group: {batch_size: 3, inner: {dept: 1}}", r"unknown parameter 'group.inner.dept'; did you mean 'depth'\?"),
        ("group: {batch_size: 3, named: {a: {dept: 1}}}", r"'group.named.a.dept'; did you mean 'depth'\?"),
        (
            "group: {batch_size: 3, xyzzy: 1}",
            "'group.xyzzy'; known: batch_size, inner, limits, named, near, rate, shares",
        ),
        ("group: {}", "parameter 'group.batch_size' is missing"),
        ("group:", "parameter 'group.batch_size' is missing"),
        ("group: {batch_size: many}", r"parameter 'group.batch_size': .*integer.*\(found 'many'\)"),
        ("group: {batch_size: 3, rate: .nan}", "parameter 'group.rate': .*finite"),
        ("group: {batch_size: yes}", r"'group.batch_size': .*integer.* \(found 'true'\)"),
        ("group: {batch_size: 3, rate: off}", "'group.rate': .*number.*"),
        ("group: {batch_size: 3, shares: [0, on]}", "'group.shares.1': .*number.*"),
        ("group: {batch_size: 3, limits: {a: no}}", "'group.limits': .*number.*"),
        (
            "group: {batch_size: 3, shares: 0.5}",
            r"^[^\n]*'group.shares': Input should be a valid list, or 'auto' \(found 0.5\)$",
        ),
        ("group: 3", "parameter 'group': .*"),
        ("grupo: {batch_size: 3}", r"no parameter group 'group'; did you mean 'grupo'\?"),
        ("- 1\n- 2", "expected groups of parameters, found list"),
        ("", "expected groups of parameters, found NoneType"),
        ("null: {batch_size: 3}", r"no parameter group 'group'; known: None"),
        ("group: {batch_size: ", "not valid YAML"),
        ("group: " + 3000 * "[", "is nested too deeply"),
        ("group: {batch_size: 0x" + 6000 * "f" + "}", "not valid YAML: .*digits"),
        ("group: {batch_size: !!int ''}", "not valid YAML"),
        ("group: {batch_size: !!bool 3}", "not valid YAML"),
        ("group: {batch_size: !!timestamp 3}", "not valid YAML"),
        ("group: {rate: " + 500 * "1:" + "1.5}", "not valid YAML"),
    ],
)
def test_a_wrong_file_is_explained(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as raised:
        load(tmp_path, text)
    assert str(raised.value).startswith(str(tmp_path / "params.yaml"))


def test_every_fault_in_a_group_gets_its_own_line(tmp_path: Path) -> None:
    with pytest.raises(InputError) as raised:
        load(tmp_path, "group: {batch_size: many, inner: {dept: 1}}")
    assert len(str(raised.value).splitlines()) == 2


def test_a_missing_file_and_bytes_that_are_not_text_are_explained(tmp_path: Path) -> None:
    file = tmp_path / "params.yaml"
    with pytest.raises(InputError, match="no such file"):
        load_params("base", Base, file)
    file.write_bytes(b"base: {seed: \xff}")
    with pytest.raises(InputError, match="not valid YAML"):
        load_params("base", Base, file)


def test_a_domain_uses_its_own_prefix_and_others_use_the_default() -> None:
    prefixes = Prefixes(default=Prefix(query="q: "), domains={"intents": Prefix(query="classification: ")})
    assert prefixes.of("intents", "query") == "classification: "
    assert prefixes.of("other", "query") == "q: "
    assert prefixes.of("other", "document") == ""


def test_a_key_that_is_no_text_is_explained_where_a_group_may_hold_anything(tmp_path: Path) -> None:
    (tmp_path / "params.yaml").write_text("start_models:\n  5: {name: a}\n")
    with pytest.raises(InputError, match=r"start_models\.5"):
        load_params("start_models", Anything, tmp_path / "params.yaml")


class Anything(RootModel[dict[str, dict[str, Any]]]):
    """Groups by name."""
