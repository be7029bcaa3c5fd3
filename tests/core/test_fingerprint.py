"""Fingerprints of code: what was made by other code must not be used again."""

import shutil
from pathlib import Path

import pytest

from batchwright.core import fingerprint
from batchwright.core.fingerprint import code_fingerprint, file_sha256, files_sha256

LIBRARY = Path(str(fingerprint.__file__)).parents[1]


def test_a_changed_line_changes_the_fingerprint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library, package = tmp_path / "batchwright", tmp_path / "pack"
    shutil.copytree(LIBRARY, library, ignore=shutil.ignore_patterns("__pycache__"))
    package.mkdir()
    (package / "policies.py").write_text("POLICIES = {}\n")
    monkeypatch.setattr(fingerprint, "__file__", str(library / "core" / "fingerprint.py"))
    found = [code_fingerprint(package)]
    for changed in (
        package / "policies.py",
        library / "formats" / "pairs.py",
        library / "core" / "params.py",
    ):
        changed.write_text(changed.read_text() + "\n")
        found.append(code_fingerprint(package))
    assert len(set(found)) == 4


@pytest.mark.parametrize("many", [0, 1 << 20])
def test_files_hashed_at_a_time_have_their_own_hashes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, many: int
) -> None:
    monkeypatch.setattr(fingerprint, "_MANY_BYTES", many)
    files = [tmp_path / f"{number}" for number in range(20)]
    for number, file in enumerate(files):
        file.write_bytes(bytes([number]) * 1000 * (20 - number))
    found = files_sha256(files)
    assert found == [file_sha256(file) for file in files]
    assert len(set(found)) == 20
    with pytest.raises(FileNotFoundError):
        files_sha256([*files, tmp_path / "none"])
