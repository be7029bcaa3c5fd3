"""Where the code of the pipeline lies: beside this package in the repository, inside it once installed."""

import os
import sys
from pathlib import Path

from batchwright.core.errors import InputError

PACKAGE = Path(__file__).parent


def code_root() -> Path:
    """Return the folder that holds ``stages`` and ``dvc.yaml``.

    Raises:
        InputError: the package was installed without them.
    """
    for folder in (PACKAGE / "_pipeline", PACKAGE.parent):
        if (folder / "stages").is_dir() and (folder / "dvc.yaml").is_file():
            return folder
    raise InputError("this installation lacks the pipeline; install Batchwright again")


def use_pipeline() -> None:
    """Make the pipeline's packages importable, here and in processes started from here."""
    root = str(code_root())
    if root not in sys.path:
        sys.path.insert(0, root)
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if root not in paths:
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [root, *paths]))
