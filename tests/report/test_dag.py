from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.errors import InputError
from stages.report.dag import Drawing, Stage, draw, read_stages
from tests.report.artifacts import PIPELINE


def chain(edges: set[tuple[int, int]], count: int) -> list[Stage]:
    """Stages ``s0``...; an edge's source writes what its target reads."""
    return [
        Stage(
            name=f"s{number}",
            many=False,
            reads=[f"data/{source}" for source, target in sorted(edges) if target == number],
            writes=[f"data/{number}"],
        )
        for number in range(count)
    ]


def names_at_ends(drawing: Drawing) -> set[tuple[str, str]]:
    at = {point: stage.name for stage, point in drawing.boxes}
    return {(at[arrow[0]], at[arrow[-1]]) for arrow in drawing.arrows}


LOOPS = {
    "variants": {"cde": {"start": "a.lock"}, "seed": {"start": "models/seed-pretrained"}},
    "pretrain": {"seed": {}},
}


def test_arrows_are_the_dependencies_that_no_others_imply(tmp_path: Path):
    file = tmp_path / "dvc.yaml"
    file.write_text(PIPELINE)
    assert names_at_ends(draw(read_stages(file, LOOPS))) == {
        ("ingest", "pretrain"),
        ("pretrain", "train"),
        ("pretrain", "control"),
        ("ingest", "embed"),
        ("embed", "cluster"),
        ("embed", "filter"),
        ("cluster", "pack"),
        ("filter", "pack"),
        ("pack", "train"),
        ("pack", "control"),
        ("train", "evaluate"),
        ("control", "evaluate"),
        ("evaluate", "report"),
    }


def test_a_loop_is_one_stage_that_runs_often_and_one_over_nothing_none(tmp_path: Path):
    file = tmp_path / "dvc.yaml"
    file.write_text(PIPELINE)
    for pretrain, expected in (({"seed": {}}, ["pretrain"]), ({}, [])):
        stages = read_stages(file, LOOPS | {"pretrain": pretrain})
        assert [stage.name for stage in stages if stage.many] == ["pack", *expected, "train", "control", "evaluate"]


def test_stages_in_a_circle_are_refused():
    with pytest.raises(InputError, match="depend on each other"):
        draw(chain({(0, 1), (1, 0)}, 2))


@given(st.sets(st.tuples(st.integers(0, 6), st.integers(0, 6)).filter(lambda edge: edge[0] < edge[1])))
def test_arrows_go_right_and_no_box_or_arrow_lies_on_another_box(edges: set[tuple[int, int]]):
    drawing = draw(chain(edges, 7))
    width, height = drawing.box
    places = [point for _, point in drawing.boxes]
    assert len(set(places)) == len(places) == 7
    for x, y in places:
        assert width / 2 <= x <= drawing.size[0] - width / 2
        assert height / 2 <= y <= drawing.size[1] - height / 2
    for arrow in drawing.arrows:
        assert [x for x, _ in arrow] == sorted({x for x, _ in arrow})
        assert not set(arrow[1:-1]) & set(places)
