"""After being killed half-way, embedding resumes where it stopped."""

import time
from pathlib import Path

import pytest

from tests.embed.conftest import RunEmbed
from tests.helpers import start_python, tree

SLOW = """
import stages, time
from pipelines.embed import chunks, handler
chunks.MEAN_TEXTS, chunks.MOST_TEXTS = 16, 64
real = handler.encode
def slow(*arguments):
    time.sleep(0.3)
    return real(*arguments)
handler.encode = slow
import runpy, sys
sys.argv = ["stages", "embed"]
runpy.run_module("stages", run_name="__main__")
"""


def chunk_files(scratch: str) -> dict[str, int]:
    files = Path(scratch).rglob("*.chunk")
    return {file.name: file.stat().st_mtime_ns for file in files if not file.name.startswith(".")}


def test_a_killed_run_is_resumed_and_produces_the_same_bytes(
    corpus: Path, run_embed: RunEmbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    with start_python("-c", SLOW, cwd=corpus) as process:
        while len(chunk_files(".scratch")) < 3:
            assert process.poll() is None, "the stage ended before it could be killed"
            time.sleep(0.02)
        process.kill()
    assert not Path("data/vectors").exists()
    finished = chunk_files(".scratch")

    summary = run_embed()
    assert 0 < int(summary.split("(")[1].split()[0]) < 140
    resumed = chunk_files(".scratch")
    assert len(resumed) > len(finished) >= 3
    assert {name: resumed[name] for name in finished} == finished

    vectors = tree(Path("data/vectors"))
    monkeypatch.setenv("BATCHWRIGHT_SCRATCH", "fresh")
    run_embed()
    assert tree(Path("data/vectors")) == vectors
    assert set(chunk_files("fresh")) == set(resumed)


@pytest.mark.parametrize("damage", ["flip", "truncate", "empty"])
def test_a_damaged_chunk_is_set_aside_and_encoded_again(
    corpus: Path, run_embed: RunEmbed, capsys: pytest.CaptureFixture[str], damage: str
) -> None:
    run_embed()
    vectors = tree(Path("data/vectors"))
    chunk = max(Path(".scratch").rglob("*.chunk"))
    content = bytearray(chunk.read_bytes())
    content[len(content) // 2] ^= 1
    chunk.write_bytes({"flip": bytes(content), "truncate": bytes(content[:-40]), "empty": b""}[damage])
    run_embed()
    assert f"warning: {chunk}: damaged, and set aside; its texts are encoded again" in capsys.readouterr().err
    assert chunk.with_suffix(".damaged").exists()
    assert tree(Path("data/vectors")) == vectors
