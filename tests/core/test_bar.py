"""What progress bars print."""

import gc

import pytest
from tqdm import tqdm

from batchwright.core.terminal import bar, counter


def test_what_is_soon_done_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(bar(iter("abc"), desc="letters", unit="letter", total=3)) == ["a", "b", "c"]
    assert capsys.readouterr().err == ""


def test_a_bar_within_another_one_disappears(capsys: pytest.CaptureFixture[str]) -> None:
    with counter(1, desc="outer", unit="step", delay=0) as outer:
        with counter(2, desc="inner", unit="text", delay=0) as inner:
            inner.update(2)
        outer.update()
    said = capsys.readouterr().err
    assert "inner:   0%" in said
    shown = said.replace("\x1b[A", "").splitlines()[-1].split("\r")[-1]
    assert shown.startswith("outer: 100%") and "1/1" in shown


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_while_a_bar_begins_leaves_no_other_message(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(tqdm, "_get_free_pos", interrupt)
    with pytest.raises(KeyboardInterrupt):
        counter(2, desc="letters", unit="letter")
    gc.collect()
