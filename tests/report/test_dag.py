from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from batchwright.core.errors import InputError
from stages.report.dag.draw import Drawing, draw
from stages.report.dag.read import Stage, read_stages
from tests.report.artifacts import PIPELINE

MINILM = "models/start/minilm"
GROUPS: dict[str, Any] = {
    "start_models": {"minilm": {"name": "package:minilm"}},
    "pretrain": {"seed": {"steps": 20}},
    "mine": {"mined-1": {"model": "models/seed"}},
    "runs": {
        "cde": {"variant": "cde", "batches": "random", "start": MINILM},
        "seed": {"variant": "seed", "batches": "contextual", "start": "models/start/seed"},
        "seed-mined-1": {"variant": "seed", "batches": "mined-1", "start": "models/seed"},
    },
    "tokens": ["cde"],
}


def chain(edges: set[tuple[int, int]], count: int) -> list[Stage]:
    """Return stages ``s0``...; the source of each edge writes what its target reads."""
    return [
        Stage(
            name=f"s{number}",
            many=False,
            reads=[[f"data/{source}" for source, target in sorted(edges) if target == number]],
            writes=[f"data/{number}"],
        )
        for number in range(count)
    ]


def read(folder: Path, groups: dict[str, Any], pipeline: str = PIPELINE) -> list[Stage]:
    file = folder / "dvc.yaml"
    file.write_text(pipeline)
    return read_stages(file, groups)


def heads(drawing: Drawing) -> set[tuple[str, str]]:
    """Return the stages at the tail and at the head of each arrow, one pair per head."""
    at = {point: stage.name for stage, point in drawing.boxes}
    ends = [(arrow, at[arrow.points[0]], at[arrow.points[-1]]) for arrow in drawing.arrows]
    ahead = {(start, end) for arrow, start, end in ends if arrow.ahead}
    back = {(end, start) for arrow, start, end in ends if arrow.back}
    assert not ahead & back
    return ahead | back


def test_arrows_are_the_dependencies_that_others_do_not_imply(tmp_path: Path):
    drawing = draw(read(tmp_path, GROUPS | {"mine": {}}))
    assert heads(drawing) == {
        ("ingest", "pretrain"),
        ("ingest", "embed"),
        ("embed", "cluster"),
        ("embed", "filter"),
        ("cluster", "pack"),
        ("filter", "pack"),
        ("pack", "train"),
        ("fetch", "train"),
        ("pretrain", "train"),
        ("fetch", "baselines"),
        ("pretrain", "baselines"),
        ("train", "evaluate"),
        ("train", "tokens"),
        ("baselines", "report"),
        ("evaluate", "report"),
        ("tokens", "report"),
    }
    assert not any(arrow.back for arrow in drawing.arrows)


def test_a_stage_that_later_runs_of_another_one_wait_for_has_an_arrow_with_two_heads(tmp_path: Path):
    drawing = draw(read(tmp_path, GROUPS))
    at = {stage.name: point for stage, point in drawing.boxes}
    both = [arrow.points for arrow in drawing.arrows if arrow.ahead and arrow.back]
    assert both == [[at["train"], at["mine"]]]
    assert at["train"][0] < at["mine"][0]
    assert {("train", "mine"), ("mine", "train"), ("train", "evaluate")} <= heads(drawing)


def test_a_longer_cycle_has_a_separate_arrow_back(tmp_path: Path):
    reads = {"mine": [["data/encoded"]], "train": [["raw"], ["data/mined"]], "encode": [["models/a"]]}
    writes = {"mine": ["data/mined"], "train": ["models/a", "models/b"], "encode": ["data/encoded"]}
    drawing = draw(Stage(name=name, many=True, reads=reads[name], writes=writes[name]) for name in reads)
    at = {stage.name: point[0] for stage, point in drawing.boxes}
    assert at["train"] < at["encode"] < at["mine"]
    assert heads(drawing) == {("train", "encode"), ("encode", "mine"), ("mine", "train")}


def test_a_loop_is_one_stage_and_a_loop_over_nothing_is_left_out(tmp_path: Path):
    every = ["pack", "fetch", "pretrain", "mine", "train", "evaluate", "tokens"]
    assert [stage.name for stage in read(tmp_path, GROUPS) if stage.many] == every
    for group, stage in (("pretrain", "pretrain"), ("mine", "mine"), ("tokens", "tokens")):
        left = read(tmp_path, GROUPS | {group: type(GROUPS[group])()})
        assert [each.name for each in left if each.many] == [name for name in every if name != stage]


def test_placeholders_of_loops_are_filled(tmp_path: Path):
    stages = {stage.name: stage for stage in read(tmp_path, GROUPS)}
    assert stages["train"].reads == [
        ["trainers/cde", MINILM, "data/shards/random"],
        ["trainers/seed", "models/start/seed", "data/shards/contextual"],
        ["trainers/seed", "models/seed", "data/shards/mined-1"],
    ]
    assert stages["train"].writes == ["models/cde", "models/seed", "models/seed-mined-1"]
    assert stages["pack"].writes == ["data/shards/contextual", "data/shards/random"]
    assert stages["tokens"].writes == ["results/tokens/cde.tsv"]


def test_a_loop_over_a_group_that_the_report_does_not_read_is_refused(tmp_path: Path):
    pipeline = yaml.safe_dump({"stages": {"distil": {"foreach": "${run}", "do": {"outs": ["models/${key}"]}}}})
    with pytest.raises(InputError, match=r"'distil' loops over 'run', .*; did you mean 'runs'"):
        read(tmp_path, GROUPS, pipeline)


def test_stages_in_a_cycle_are_refused():
    with pytest.raises(InputError, match="depend on each other: s0, s1"):
        draw(chain({(0, 1), (1, 0)}, 2))


@given(st.sets(st.tuples(st.integers(0, 6), st.integers(0, 6)).filter(lambda edge: edge[0] < edge[1])))
def test_arrows_go_right_and_no_box_or_arrow_overlaps_another_box(edges: set[tuple[int, int]]):
    drawing = draw(chain(edges, 7))
    width, height = drawing.box
    places = [point for _, point in drawing.boxes]
    assert len(set(places)) == len(places) == 7
    for x, y in places:
        assert width / 2 <= x <= drawing.size[0] - width / 2
        assert height / 2 <= y <= drawing.size[1] - height / 2
    for arrow in drawing.arrows:
        assert (arrow.ahead, arrow.back) == (True, False)
        assert [x for x, _ in arrow.points] == sorted({x for x, _ in arrow.points})
        assert not set(arrow.points[1:-1]) & set(places)


@given(
    st.lists(st.lists(st.sets(st.integers(0, 4), max_size=2), min_size=1, max_size=3), min_size=1, max_size=5),
)
def test_loops_that_depend_on_each_other_are_drawn_with_every_head_or_refused(needs: list[list[set[int]]]):
    stages = [
        Stage(
            name=f"s{number}",
            many=True,
            reads=[[f"data/{source}" for source in sorted(item)] for item in items],
            writes=[f"data/{number}"],
        )
        for number, items in enumerate(needs)
    ]
    try:
        drawing = draw(stages)
    except InputError:
        return
    needed = {(f"s{s}", f"s{t}") for t, items in enumerate(needs) for item in items for s in item if s < len(needs)}
    shown = heads(drawing)
    assert shown <= needed
    for arrow in drawing.arrows:
        assert arrow.ahead or arrow.back
        assert [x for x, _ in arrow.points] == sorted({x for x, _ in arrow.points})
    reachable = dict.fromkeys(shown)
    for _ in stages:
        reachable |= {(a, d): None for a, b in reachable for c, d in shown if b == c}
    assert {(source, target) for source, target in needed if source != target} <= reachable.keys()
