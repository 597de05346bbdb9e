"""Size and speed of the stores of a translation memory.

    python -m benchmarks.datastore [--pairs=1000,10000,100000] [--out=F]
    python -m benchmarks.datastore --model=RUN --memory=DIR/train --test=DIR/test [--lines=100]

For each number of pairs a memory is stored three ways: as two text files, as a folder with the
index of the pairs, and as a folder that also has their readouts (`tfmann datastore --keys`). Each
store has its bytes on disk, the seconds to write it (with those to load the model, which only
readouts need), the seconds to open it, and those to translate the first lines of the test with it,
greedy, once everything is compiled. A record without a store is the model alone. The default is the
small Luong model of `tfmann play` with the synthetic corpus.
"""

from __future__ import annotations

import argparse
import itertools
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from benchmarks import harness
from tfmann import synthetic
from tfmann.cli import datastore
from tfmann.data.text_files import iter_lines, write_lines
from tfmann.errors import UsageError
from tfmann.play.library import SHIPPED
from tfmann.utils.provenance import provenance

if TYPE_CHECKING:
    from tfmann.api import Model

STORES = ("text", "index", "keys")
Text = tuple[list[str], list[str]]  # two sides, line by line


def synthetic_text(pairs: int, lines: int) -> tuple[Text, list[str]]:
    """Returns a memory of the synthetic corpus, and sources of a test that is not part of it."""
    examples = synthetic.generate(pairs + lines, seed=7)
    memory, test = examples[:pairs], examples[pairs:]
    sides = [e.source for e in memory], [e.target for e in memory], [e.source for e in test]
    source, target, queries = ([" ".join(words) for words in side] for side in sides)
    return (source, target), queries


def corpus_text(model: Model, memory: str, test: str, pairs: int, lines: int) -> tuple:
    """Returns the first pairs of a memory and the first sources of a test, by their prefixes."""
    source, target = model.hparams.require_suffixes()
    sides = [
        list(itertools.islice(iter_lines(f"{memory}.{side}"), pairs)) for side in (source, target)
    ]
    if len(sides[0]) < pairs:
        raise UsageError(f"{memory}.{source} has {len(sides[0])} pairs, fewer than {pairs}")
    return tuple(sides), list(itertools.islice(iter_lines(f"{test}.{source}"), lines))


def measure(folder: str, model: Model, text: Text, queries: list[str]) -> Iterator[dict]:
    """Yields a record for the model alone and for each store of one memory."""
    base = {
        "benchmark": "datastore",
        "cell": model.hparams.cell,
        "width": model.hparams.num_units,
        "pairs": len(text[0]),
        "lines": len(queries),
    }
    yield {**base, "store": None, "seconds": _translation_seconds(model, queries), **provenance()}
    with tempfile.TemporaryDirectory() as scratch:
        files = [str(Path(scratch, f"tm.{side}")) for side in ("src", "tgt")]
        for path, side in zip(files, text):
            write_lines(path, side)
        for store in STORES:
            yield {**base, **_measure_store(folder, model, store, files, queries), **provenance()}


def _measure_store(
    folder: str, model: Model, store: str, files: list[str], queries: list[str]
) -> dict:
    memory = ",".join(files)
    record: dict = {"store": store}
    if store == "text":
        record["bytes"] = sum(os.path.getsize(path) for path in files)
    else:
        output = str(Path(files[0]).with_name(store))
        flags = ["--keys"] if store == "keys" else []
        begin = time.perf_counter()
        where = f"--model={folder}", f"--translation_memory={memory}", f"--output={output}"
        if datastore.main([*where, *flags]):
            raise UsageError(f"the store with {store} could not be written")
        record["writing_seconds"] = round(time.perf_counter() - begin, 2)
        record["bytes"] = sum(path.stat().st_size for path in Path(output).iterdir())
        memory = output
    begin = time.perf_counter()
    with_memory = model.with_search(translation_memory=memory)
    record["opening_seconds"] = round(time.perf_counter() - begin, 3)
    record["seconds"] = _translation_seconds(with_memory, queries)
    return record


def _translation_seconds(model: Model, queries: list[str]) -> float:
    """Returns the seconds of a translation after one that compiles everything."""
    list(model.translate(queries))
    begin = time.perf_counter()
    list(model.translate(queries))
    return round(time.perf_counter() - begin, 2)


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def main(argv: Sequence[str] | None = None) -> None:
    """Runs the measurements of the command line."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--model", default=str(SHIPPED / "luong"), help="folder of a run")
    parser.add_argument("--memory", help="prefix of the memory's two files")
    parser.add_argument("--test", help="prefix of the sentences to translate")
    parser.add_argument("--pairs", type=_numbers, default=[1000, 10_000, 100_000])
    parser.add_argument("--lines", type=int, default=100, help="sentences to translate")
    parser.add_argument("--out", type=Path, help="file to append the lines to")
    args = parser.parse_args(argv)
    if bool(args.memory) != bool(args.test):
        parser.error("--memory and --test belong together")

    from tfmann import api

    model = api.load(args.model, infer_mode="greedy")
    for pairs in args.pairs:
        if args.memory:
            text, queries = corpus_text(model, args.memory, args.test, pairs, args.lines)
        else:
            text, queries = synthetic_text(pairs, args.lines)
        harness.write(measure(args.model, model, text, queries), args.out)


if __name__ == "__main__":
    main()
