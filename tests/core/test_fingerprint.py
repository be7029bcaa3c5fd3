"""Fingerprints of code: what was made by other code must not be used again."""

import shutil
from pathlib import Path

import pytest

from batchwright.core import fingerprint
from batchwright.core.fingerprint import code_fingerprint

LIBRARY = Path(str(fingerprint.__file__)).parents[1]


def test_a_changed_line_changes_the_fingerprint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library, package = tmp_path / "batchwright", tmp_path / "pack"
    shutil.copytree(LIBRARY, library, ignore=shutil.ignore_patterns("__pycache__"))
    package.mkdir()
    (package / "policies.py").write_text("POLICIES = {}\n")
    monkeypatch.setattr(fingerprint, "__file__", str(library / "core" / "fingerprint.py"))
    found = [code_fingerprint(package)]
    for changed in (package / "policies.py", library / "formats" / "pairs.py", library / "core" / "params.py"):
        changed.write_text(changed.read_text() + "\n")
        found.append(code_fingerprint(package))
    assert len(set(found)) == 4
