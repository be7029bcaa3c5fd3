"""``batchwright add`` doubts texts that are hardly meant as they stand."""

import json
from pathlib import Path

import pytest

from tests.ingest.running import ingest
from tests.project.test_add import PAIRS, add, sources
from tests.project.test_add_columns import write


def test_labels_and_scores_inside_of_documents_are_asked_for(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        {"query": query, "passages": [{"text": text, "is_selected": 1}, {"text": f"no {text}", "is_selected": 0}]}
        for query, text in PAIRS
    ]
    Path("my set.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(SystemExit):
        add("my set.jsonl")
    asked = "my set.jsonl: the documents in 'passages' have 'is_selected' (1, 0), which may say which of them answer"
    command = "jq -c 'del(.\"passages\") + .\"passages\"[]' 'my set.jsonl' > pairs.jsonl\n"
    said = capsys.readouterr().err
    assert asked in said
    assert said.endswith(command)
    add("my set.jsonl", "--document", "passages")
    assert len(ingest(*sources()).pairs) == 2 * len(PAIRS)


@pytest.mark.parametrize(("column", "scores"), [("passages", [1, 1]), ("positive_ctxs", [0.9, 0.2])])
def test_labels_that_say_that_all_documents_are_answers_are_not_asked_for(
    project: Path, column: str, scores: list[float]
) -> None:
    rows = [{"query": query, column: [{"text": text, "score": score} for score in scores]} for query, text in PAIRS]
    Path("a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    add("a.jsonl")
    assert ingest(*sources()).texts == {*PAIRS}


@pytest.mark.parametrize(
    ("column", "mark"),
    [
        ("document", """['{}', "more"]"""),
        ("document", '{{"text": "{}"}}'),
        ("query", '="{}"'),
        ("query", "'{}'"),
        ("query", "b'{}'"),
        ("negatives", '["{}"]'),
    ],
)
def test_lists_objects_and_quotation_marks_in_texts_are_doubted(
    project: Path, capsys: pytest.CaptureFixture[str], column: str, mark: str
) -> None:
    file = write(**{column: lambda number: mark.format(f"text {number}")})
    with pytest.raises(SystemExit):
        add(file)
    said = f"a.jsonl: most texts of column '{column}' stand in marks, such as '{mark.format('text 0')}': take them away"
    assert said in capsys.readouterr().err
    if column == "negatives":
        add(file, "--ignore", column)
        assert "negatives" not in sources().pop()["columns"]
    add(file, f"--{column}", column)
    assert {mark.format(f"text {number}") for number in range(9)} <= {
        text for pair in ingest(*sources()).pairs for text in (pair["query"], pair["document"], *pair["negatives"])
    }


def test_some_texts_in_quotation_marks_are_not_doubted(project: Path) -> None:
    add(write(document=lambda number: [f'"word{number}"', f'"a{number}" or "b"', f"answer {number}"][number % 3]))
    assert len(ingest(*sources()).pairs) == len(PAIRS)
