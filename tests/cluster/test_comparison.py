"""``python -m benchmarks.batches``: the comparison of clusterings."""

import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from benchmarks import batches
from benchmarks.comparison import measure
from benchmarks.methods import ALL
from stages.filter import stage as judge
from tests.helpers import plant_vectors, topic_pairs, write_pairs


@pytest.fixture
def data(workspace: Path) -> Path:
    for seed, domain in enumerate(("birds", "fish")):
        write_pairs(domain, topic_pairs(40, seed=seed))
    plant_vectors()
    judge.main()
    return workspace / "data"


def test_an_unknown_domain_is_refused(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    output = data / "table.tsv"
    command = ["batches", str(data), "--domains", "birds", "nosuch", "--output", str(output)]
    monkeypatch.setattr(sys, "argv", command)
    with pytest.raises(SystemExit) as ended:
        batches.main()
    assert ended.value.code == 2
    message = "error: argument --domains: not in the data: nosuch (there are: birds, fish)\n"
    assert capsys.readouterr().err.endswith(message)
    assert not output.exists()


@pytest.mark.parametrize(("sizes", "largest", "smallest"), [([25, 15], 25, 15), ([37, 3], 37, 3), ([], 0, 0)])
def test_the_true_cluster_sizes_are_reported(
    data: Path, monkeypatch: pytest.MonkeyPatch, sizes: list[int], largest: int, smallest: int
) -> None:
    made = np.arange(40).reshape(5, 8), np.array(sizes, dtype=np.int64)
    monkeypatch.setitem(ALL, "given", lambda *_: made)
    row = measure(("birds", partial(batches.open_domain, data, "birds"), 8, "given"))
    assert row is not None
    assert (row.batches, row.largest, row.smallest) == (5, largest, smallest)


def test_the_control_puts_the_same_clusters_in_another_order(data: Path) -> None:
    vectors, _ = batches.open_domain(data, "birds")
    (toured, sizes), (shuffled, same) = (ALL[name](vectors, 8) for name in ("reference", "reference_shuffled"))
    assert sorted(sizes) == sorted(same)
    assert toured.shape == shuffled.shape == (5, 8)
    assert len(np.unique(shuffled)) == shuffled.size
    assert not np.array_equal(toured, shuffled)
