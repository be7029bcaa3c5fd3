"""The stages of ``dvc.yaml``, a folder each: ``python -m stages.NAME`` reads artifacts and writes artifacts.

Importing this package keeps third-party libraries quiet; it must come before they do.
"""

import logging
import os
import warnings

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
os.environ.setdefault("HF_DATASETS_DISABLE_PROGRESS_BARS", "1")
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_TRAIN_ENABLE_PRINT_PATCH", "0")
warnings.filterwarnings("ignore")
logging.getLogger().setLevel(logging.ERROR)
