"""Names from ``params.yaml`` never leave their folder, and are never more than one word of a command."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from batchwright.core.errors import InputError
from batchwright.core.names import check_name, check_names
from batchwright.core.params import load_params, read_params
from batchwright.formats.pairs import domain_of, file_stem
from batchwright.formats.runs import Runs
from tests.helpers import project_environment, run_stage

BAD = ["a; touch x", "..", ".", "", "a/b", "$(x)", "a'b", "-rf", "a\nb", "x" * 101, "é", "a b", ".hidden"]
GOOD = ["biencoder", "static-random", "mined-1", "all-MiniLM-L6-v2", "a.b_c", "1"]
RUN = {"variant": "biencoder", "batches": "contextual", "start": "models/start/minilm"}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_word_or_no_folder_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="cannot be a name; use letters, digits, - and _"):
        check_name(name)


@pytest.mark.parametrize("name", GOOD)
def test_common_names_are_fine(name: str) -> None:
    assert check_name(name) == name


@pytest.mark.parametrize(
    ("groups", "said"),
    [
        ({"runs": {"a; touch x": RUN}}, r"params.yaml: runs: 'a; touch x' cannot be a name"),
        ({"start_models": {"../x": {}}}, r"start_models: '../x' cannot be a name"),
        ({"tokens": ["a b"]}, r"tokens: 'a b' cannot be a name"),
        ({"runs": {"a": RUN | {"batches": "../../x"}}}, r"runs.a: '../../x' cannot be a name"),
        ({"runs": {"a.b": RUN}}, r"params.yaml: runs: 'a.b' has a dot"),
        ({"runs": {"start": RUN}}, r"runs: 'start' is taken"),
        ({"runs": {True: RUN}}, r"runs: YAML reads the name True as no text; put quotes around it"),
        ({"tokens": [12.5]}, r"tokens: YAML reads the name 12.5 as no text"),
        ({"mine": {"random": {}}}, r"mine: 'random' is taken"),
        ({"tune": {"mined": {}}, "mine": {"mined": {}}}, r"tune: 'mined' is taken"),
        ({"runs": {"a": RUN, "a-dev": RUN}}, r"runs: 'a-dev' is taken"),
        ({"start_models": {"x": {}}, "pretrain": {"x": {}}}, r"pretrain: 'x' is taken"),
    ],
)
def test_no_stage_starts_while_there_is_a_bad_name(workspace: Path, groups: dict[str, object], said: str) -> None:
    file = workspace / "params.yaml"
    file.write_text(yaml.safe_dump(yaml.safe_load(file.read_text()) | groups))
    with pytest.raises(InputError, match=said):
        check_names(read_params(Path("params.yaml")), Path("params.yaml"))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[" * 3000, "is nested too deeply"),
        ("seed: " + "9" * 6000, "not valid YAML"),
        ("when: 2020-13-45", "not valid YAML"),
        ("runs: {a: 1", "not valid YAML"),
    ],
)
def test_names_in_a_file_that_is_no_yaml_are_not_looked_for(tmp_path: Path, content: str, said: str) -> None:
    (tmp_path / "params.yaml").write_text(content)
    with pytest.raises(InputError, match=f"params.yaml: {said}"):
        check_names(read_params(tmp_path / "params.yaml"), Path("params.yaml"))


@pytest.mark.parametrize("content", ["runs: 5", "runs: true", "runs:", "tokens: {a: 1}", "runs: {a: 1}"])
def test_groups_without_names_have_no_bad_ones(tmp_path: Path, content: str) -> None:
    (tmp_path / "params.yaml").write_text(content)
    check_names(read_params(tmp_path / "params.yaml"), Path("params.yaml"))


def test_a_stage_and_make_repro_say_so(workspace: Path) -> None:
    file = workspace / "params.yaml"
    file.write_text(yaml.safe_dump(yaml.safe_load(file.read_text()) | {"runs": {"a; touch x": RUN}}))
    done = run_stage("ingest", cwd=workspace)
    assert (done.returncode, done.stderr.partition(" cannot")[0]) == (
        1,
        "ingest: error: params.yaml: runs: 'a; touch x'",
    )
    checked = subprocess.run(
        [sys.executable, "-m", "stages", "check"], env=project_environment(), capture_output=True, text=True
    )
    assert (checked.returncode, checked.stderr.partition(" cannot")[0]) == (
        1,
        "check: error: params.yaml: runs: 'a; touch x'",
    )


def test_a_run_starts_from_a_folder_of_the_project(tmp_path: Path) -> None:
    (tmp_path / "params.yaml").write_text(yaml.safe_dump({"runs": {"a": RUN | {"start": "../../x"}}}))
    with pytest.raises(InputError, match=r"'runs.a.start': '..' cannot be a name"):
        load_params("runs", Runs, tmp_path / "params.yaml")


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30))
def test_any_domain_has_a_file_of_its_own_that_is_none_of_ours(domain: str) -> None:
    stem = file_stem(domain)
    assert domain_of(stem) == domain
    assert not {"/", ".", "\0", "\n"} & set(stem)


@pytest.mark.parametrize("domain", ["..", ".", "encoder.json", "checksums.sha256", "provenance.json", "a/b", "x\ny"])
def test_a_domain_cannot_take_a_name_of_ours(domain: str) -> None:
    assert (Path("data/vectors/x") / file_stem(domain)).parent == Path("data/vectors/x")
    assert file_stem(domain) != domain
