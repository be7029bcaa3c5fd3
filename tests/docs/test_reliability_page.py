"""docs/reliability.md explains messages that there are."""

import re

import pytest

from tests.helpers import REPO

ROWS = re.findall(r"^\| `([^`]+)`([^|]*)\|", (REPO / "docs/reliability.md").read_text(), re.MULTILINE)
OWN = [message.strip() for message, of in ROWS if "of DVC" not in of and not message.startswith("command not found")]
FOLDERS = ("batchwright", "pipelines", "project", "stages", "trainers")


def test_the_page_has_a_table() -> None:
    assert len(OWN) > 9


@pytest.mark.parametrize("message", OWN)
def test_every_message_is_one_of_ours(message: str) -> None:
    files = (file for folder in FOLDERS for file in (REPO / folder).rglob("*.py"))
    assert any(message in file.read_text() for file in files)
