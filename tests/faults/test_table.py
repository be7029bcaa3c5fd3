"""The table that the harness prints."""

from pathlib import Path

import pytest

from tests.faults import __main__ as harness


@pytest.mark.parametrize(
    ("code", "row", "faults"),
    [
        (
            "print({'all killed': 1200, 'differ': 2, \"DVC's own\": 1, 'crash': 3})",
            "1,200 all killed, 1 DVC's own | 2 | 0 | 3 |",
            5,
        ),
        (
            "print({'files': 9, 'not noticed': 1}); raise SystemExit(1)",
            "failed, see .scratch/faults/made.log | 0 | 1 | 0 |",
            2,
        ),
        ("print('{}')", "failed, see .scratch/faults/made.log | 0 | 0 | 0 |", 1),
    ],
)
def test_a_part_that_fails_or_says_nothing_is_a_fault(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    code: str,
    row: str,
    faults: int,
) -> None:
    (tmp_path / "tests/faults").mkdir(parents=True)
    for file, content in (("__init__.py", ""), ("faults/__init__.py", ""), ("faults/made.py", code)):
        (tmp_path / "tests" / file).write_text(content)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    harness.LOGS.mkdir(parents=True)
    assert harness.run(harness.Part("what", "made")) == faults
    assert capsys.readouterr().out == f"| what | `python -m tests.faults.made` | {row}\n"
