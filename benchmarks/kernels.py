"""What a processor's instructions change: stages run again under other kernels, compared with what is committed.

``python -m benchmarks.kernels [--kernels NAME ...] [--transformers] [--output FILE]``

Run it in a clone of its own in which ``dvc repro`` has made everything. Each stage runs in a fresh process, which the
environment tells which kernels to use, and nothing else of kernels; then git says which files differ. By default, the
stages are those that make batches and static models, where nothing may differ. With ``--transformers``, they are those
that train and score transformers, whose last bits do differ; the table says how far that moves nDCG@10.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from batchwright.core.command import new_parser
from batchwright.core.files import write_tsv
from batchwright.core.params import load_params
from batchwright.core.paths import RESULTS
from batchwright.formats.runs import Runs
from batchwright.retrievers.common.model_folder import is_static

EXACT = ("embed", "filter", "cluster", "pack@contextual", "pack@random", "fetch@static", "train@static")
_OLDEST = {
    "one thread": {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    "NumPy: baseline": {"NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL AVX512_SPR"},
    "FAISS: none": {"FAISS_SIMD_LEVEL": "NONE", "FAISS_OPT_LEVEL": "generic"},
    "torch: default": {"ATEN_CPU_CAPABILITY": "default"},
    "MKL, oneDNN: SSE": {"MKL_CBWR": "COMPATIBLE", "ONEDNN_MAX_CPU_ISA": "SSE41"},
    "OpenBLAS: Prescott": {"OPENBLAS_CORETYPE": "Prescott"},
}
KERNELS = {
    "as found": {},
    "the oldest of each": {name: value for kernels in _OLDEST.values() for name, value in kernels.items()},
    **_OLDEST,
    "FAISS: AVX2": {"FAISS_SIMD_LEVEL": "AVX2", "FAISS_OPT_LEVEL": "avx2"},
    **{
        f"OpenBLAS: {name}": {"OPENBLAS_CORETYPE": name}
        for name in ("Nehalem", "Sandybridge", "Haswell", "Zen", "SkylakeX")
    },
}
"""What the environment says to a process, by library. Of OpenBLAS, a processor runs what it can, and else its own."""
_VARIABLES = ("OPENBLAS", "OMP_", "MKL_", "NPY_", "FAISS_", "ATEN_", "ONEDNN_")

Row = dict[str, str]


def main() -> None:
    """Run the stages under each kernel, and print and write what differed."""
    parser = new_parser("benchmarks.kernels", str(__doc__), "python -m benchmarks.kernels --kernels 'FAISS: none'")
    parser.add_argument("--kernels", nargs="+", choices=KERNELS, default=list(KERNELS), metavar="NAME")
    parser.add_argument("--transformers", action="store_true")
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    stages = transformer_stages() if arguments.transformers else EXACT
    rows = []
    for name in arguments.kernels:
        run_stages(stages, KERNELS[name])
        kind = "transformers" if arguments.transformers else "batches, static models"
        rows.append({"kernels": name, "OpenBLAS": blas(KERNELS[name]), "of": kind, **differences()})
        print(" | ".join(rows[-1].values()), flush=True)
        if arguments.output:
            write_tsv(arguments.output, rows)


def transformer_stages() -> list[str]:
    """Every stage that trains or scores a transformer, and the comparison of all."""
    runs = [name for name, run in load_params("runs", Runs).root.items() if not is_static(Path(run.start))]
    return [*(f"train@{name}" for name in runs), "baselines", *(f"evaluate@{name}" for name in runs), "compare"]


def run_stages(stages: Sequence[str], kernels: Mapping[str, str]) -> None:
    """Run each stage in a process of its own, whose environment says nothing of kernels but ``kernels``."""
    line = ["dvc", "repro", "--quiet", "--force", "--single-item", *stages]
    with tempfile.TemporaryDirectory() as scratch:  # nothing is kept from run to run
        places = {"BATCHWRIGHT_SCRATCH": scratch}
        subprocess.run(line, env=environment(kernels) | places, stdout=subprocess.DEVNULL, check=True)


def environment(kernels: Mapping[str, str]) -> dict[str, str]:
    """This process's environment, with ``kernels`` instead of what it says of them."""
    return {name: value for name, value in os.environ.items() if not name.startswith(_VARIABLES)} | {**kernels}


def blas(kernels: Mapping[str, str]) -> str:
    """Return which kernels NumPy's OpenBLAS runs."""
    script = (
        "import numpy, threadpoolctl;"
        "print(next(pool['architecture'] for pool in threadpoolctl.threadpool_info() if 'numpy' in pool['filepath']))"
    )
    return subprocess.check_output([sys.executable, "-c", script], env=environment(kernels), text=True).strip()


def differences() -> Row:
    """Return how many committed files differ, and by how much nDCG@10 does at most."""
    changed = subprocess.check_output(["git", "diff", "--name-only", "HEAD"], text=True).split()
    file = RESULTS / "metrics.json"
    before = json.loads(subprocess.check_output(["git", "show", f"HEAD:./{file}"], text=True))
    moved = {name: abs(value - before[name]) for name, value in json.loads(file.read_bytes()).items()}
    most = max(moved, key=lambda name: moved[name])
    return {
        "committed files that differ": str(len(changed)),
        "nDCG@10 moves by": f"{moved[most]:.4f} ({most})" if moved[most] else "0",
    }


if __name__ == "__main__":
    main()
