"""Code in a model's folder does not run."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from sentence_transformers import SentenceTransformer

from batchwright.core.errors import InputError
from batchwright.formats.models import Prefix
from batchwright.retrievers import load_retriever
from batchwright.retrievers.cde.retriever import CODE, save_contextual
from tests.cde.encoders import encoder as contextual
from tests.faults.models import encoder
from tests.tiny_models import save_bert
from tests.train.toys import describe


@pytest.fixture
def code(tmp_path: Path) -> str:
    """Code that leaves a file behind when it is imported."""
    return f"open({str(tmp_path / 'it ran')!r}, 'w').close()\n"


@pytest.mark.parametrize("read", [encoder, load_retriever])
@pytest.mark.parametrize(("file", "key"), [("modules.json", "type"), ("config.json", "auto_map")])
def test_a_model_of_classes_in_its_folder_is_refused(
    tmp_path: Path, code: str, file: str, key: str, read: Callable[[Path], object]
) -> None:
    folder = describe(save_bert(tmp_path / "model"))
    found = json.loads((folder / file).read_text())
    (folder / "theirs.py").write_text(code)
    if key == "type":
        found[1]["type"] = "theirs.Pooling"
    else:
        found |= {"model_type": "theirs", "auto_map": dict.fromkeys(("AutoConfig", "AutoModel"), "theirs.Model")}
    (folder / file).write_text(json.dumps(found))
    with pytest.raises(InputError, match=r"cannot be loaded|brings code of its own"):
        read(folder)
    assert not (tmp_path / "it ran").exists()


def test_a_cde_model_is_loaded_by_this_projects_code(tmp_path: Path, code: str) -> None:
    folder = tmp_path / "model"
    save_contextual(SentenceTransformer(modules=[contextual()], device="cpu"), folder, Prefix())
    describe(folder)
    for name in CODE:
        (folder / name).write_text(code)
    load_retriever(folder)
    assert not (tmp_path / "it ran").exists()
