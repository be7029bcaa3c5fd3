"""What Beam costs: the embedding pipeline compared with the same encoder called directly.

``python -m benchmarks.embed [--pairs N] [--repeats N]`` takes the default corpus (run ``dvc repro ingest`` first),
encodes the same texts both ways in turn, and prints the medians and their ratio; the bar is 1.10.
"""

import os
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np

from batchwright.core.command import new_parser
from batchwright.core.params import load_params
from batchwright.formats.pairs import PAIRS_SCHEMA, domains, pairs_file, read_pairs, write_table
from pipelines.embed.chunks import cut_chunks
from pipelines.embed.handler import encode, load_encoder
from pipelines.embed.params import EmbedParams, EncoderParams
from pipelines.embed.pipeline import embed

BAR = 1.10
SOURCE = Path("data/pairs")


def main() -> None:
    """Print one line per measurement, and the ratio of the medians."""
    parser = new_parser("benchmarks.embed", str(__doc__), "python -m benchmarks.embed --pairs 1000")
    parser.add_argument("--pairs", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    models = load_params("embed", EmbedParams).models.values()
    encoder = next(model for model in models if isinstance(model, EncoderParams))
    seconds: dict[str, list[float]] = {"direct": [], "beam": []}
    for turn in range(arguments.repeats):
        with tempfile.TemporaryDirectory() as folder:
            pairs = _take(Path(folder) / "pairs", arguments.pairs)
            os.environ["BATCHWRIGHT_SCRATCH"] = f"{folder}/scratch"
            for name, work in (("direct", _direct), ("beam", _beam)):
                start = time.perf_counter()
                texts = work(pairs, encoder, Path(folder))
                seconds[name].append(time.perf_counter() - start)
                print(f"{turn + 1} {name:6} {texts:6,} texts {seconds[name][-1]:7.2f} s", flush=True)
    direct, beam = (statistics.median(seconds[name]) for name in ("direct", "beam"))
    print(f"median: direct {direct:.2f} s, Beam {beam:.2f} s, ratio {beam / direct:.3f} (bar {BAR:.2f})")


def _take(folder: Path, count: int) -> Path:
    domain = domains(SOURCE)[0]
    write_table(pairs_file(folder, domain), read_pairs(SOURCE, domain).slice(0, count), PAIRS_SCHEMA)
    return folder


def _direct(pairs: Path, encoder: EncoderParams, folder: Path) -> int:
    """Encode and save the same chunks: all of the work, without Beam."""
    domain = domains(pairs)[0]
    table = read_pairs(pairs, domain)
    texts = [encoder.prefixes.of(domain, "query") + text for text in table["query"].to_pylist()] + [
        encoder.prefixes.of(domain, "document") + text for text in table["document"].to_pylist()
    ]
    model = load_encoder(encoder)
    chunks = list(cut_chunks(texts))
    for number, chunk in enumerate(chunks):
        np.save(folder / f"{number}.npy", encode(model, chunk.texts, encoder.batch_size))
    return sum(len(chunk.texts) for chunk in chunks)


def _beam(pairs: Path, encoder: EncoderParams, folder: Path) -> int:
    return embed(pairs, encoder, folder / "vectors")[0]


if __name__ == "__main__":
    main()
