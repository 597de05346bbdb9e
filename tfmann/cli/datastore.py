"""The command that prepares a translation memory: ``tfmann datastore``.

TensorFlow is imported only where the model has to run, for `--keys`, `--dev` and `--adapt`.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tfmann import config
from tfmann.cli import adaptation
from tfmann.cli.model_flags import add_model
from tfmann.config.search import MODEL_ALONE
from tfmann.data import (
    datastore_folder,
    input_checks,
    memory_files,
    run_vocabularies,
    translation_memory,
)
from tfmann.data.text_files import iter_parallel, require_parallel
from tfmann.data.translation_memory import TranslationMemory
from tfmann.errors import UsageError, interruptible, print_message, run_command
from tfmann.utils.arguments import ArgumentParser
from tfmann.utils.files import file_digest
from tfmann.utils.progress import progress
from tfmann.utils.tensorflow_import import import_tensorflow

if TYPE_CHECKING:
    from tfmann.api import Model

_EXAMPLES = """\
examples:
  tfmann datastore --model=runs/mine --translation_memory=tm.de,tm.en --output=tm
  tfmann datastore --model=runs/mine --translation_memory=tm.de,tm.en --output=tm --keys
  tfmann datastore --model=runs/mine --translation_memory=tm --dev=dev.de,dev.en
  tfmann datastore --model=runs/mine --translation_memory=tm --dev=dev.de,dev.en --adapt=tm.json
  tfmann translate --model=runs/mine --translation_memory=tm --input=FILE"""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command line; returns the exit status."""
    args = _parser().parse_args(argv)
    with interruptible():
        return run_command(lambda: _run(args))


def _parser() -> argparse.ArgumentParser:
    parser = ArgumentParser(
        prog="tfmann datastore",
        description="Writes the pairs of a translation memory and their index into a folder, which "
        "--translation_memory takes and does not have to build again.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_model(parser)
    parser.add_argument(
        "--translation_memory", required=True, help="SOURCE,TARGET: two files, line by line"
    )
    parser.add_argument("--output", help="folder to write")
    parser.add_argument(
        "--keys",
        action="store_true",
        help="also store the readouts of all pairs, so that translation needs no forced decoding: "
        "R float16 numbers per target token",
    )
    parser.add_argument(
        "--dev",
        metavar="SOURCE,TARGET",
        help="print the distances of these pairs to the memory, to choose "
        "translation_memory_tau by",
    )
    parser.add_argument("--pairs", type=int, help="of --dev: pairs that are retrieved a sentence")
    parser.add_argument(
        "--adapt",
        metavar="FILE",
        help="train the network of adaptive kNN-MT on the pairs of --dev, which must not be in the "
        "memory, and write it to a file for translation_memory_adaptive",
    )
    parser.add_argument(
        "--neighbors", type=int, metavar="K", help="of --adapt: a power of 2 (default: 8)"
    )
    parser.add_argument(
        "--tau",
        type=float,
        help="of --adapt: temperature (default: the best of five, by the median distance)",
    )
    return parser


def _run(args: argparse.Namespace) -> None:
    if not args.output and not args.dev:
        raise UsageError("nothing to do: give --output, the folder to write, or --dev")
    if args.keys and not args.output:
        raise UsageError("--keys are written into a folder: give --output")
    if args.pairs is not None and not args.dev:
        raise UsageError("--pairs has no effect without --dev")
    if args.ckpt and not (args.keys or args.dev):
        raise UsageError("--ckpt has no effect without --keys or --dev: no model runs")
    _check_adaptation(args)
    if args.output:
        if os.path.isdir(args.translation_memory):
            raise UsageError(
                f"--translation_memory={args.translation_memory} is a folder: give the two text "
                "files of a memory, SOURCE,TARGET, to make --output of"
            )
        memory_files.file_pair(args.translation_memory)
    settings: dict[str, Any] = {**MODEL_ALONE, "translation_memory": args.translation_memory}
    if args.pairs is not None:
        settings["translation_memory_pairs"] = args.pairs
    hparams = config.settings_of_model(args.model, settings)
    memory_files.require(hparams)
    if args.dev:
        require_parallel(*_dev_files(args.dev))
    if args.output:
        _write(args, hparams)
    if args.adapt:
        neighbors = args.neighbors or adaptation.NEIGHBORS
        adaptation.adapt(
            _load(args, settings), _dev_files(args.dev), args.adapt, neighbors, args.tau
        )
    elif args.dev:
        _print_distances(_load(args, settings), _dev_files(args.dev))


def _check_adaptation(args: argparse.Namespace) -> None:
    if not args.adapt:
        if args.neighbors is not None or args.tau is not None:
            raise UsageError("--neighbors and --tau have no effect without --adapt")
        return
    if not args.dev:
        raise UsageError("--adapt trains on a development set: give --dev")
    if args.neighbors is not None:
        adaptation.require_neighbors(args.neighbors)
    if args.tau is not None and not 1e-6 <= args.tau < math.inf:
        raise UsageError(f"--tau={args.tau}: expected a number of at least 1e-6")
    read = *args.translation_memory.split(","), *_dev_files(args.dev)
    input_checks.require_output("adapt", args.adapt, read, args.model)
    folder = os.path.realpath(os.path.dirname(args.adapt) or ".")
    for memory in filter(None, (args.translation_memory, args.output)):
        if os.path.realpath(memory) == folder:
            raise UsageError(
                f"--adapt={args.adapt}: {memory} is the folder of a datastore, which holds nothing "
                "else: give a file of another folder"
            )


def _write(args: argparse.Namespace, hparams: Any) -> None:
    files = memory_files.file_pair(args.translation_memory)
    input_checks.refuse_overwriting_text("output", args.output, files)
    datastore_folder.require_usable(args.output)
    languages = run_vocabularies.load(hparams, args.model)
    memory = translation_memory.read(*files, languages)
    origin = {
        "text": languages.fingerprints,
        "files": {os.path.abspath(path): file_digest(path) for path in files},
        "left_out": memory.left_out,
    }
    model = _load(args, MODEL_ALONE) if args.keys else None
    with datastore_folder.new_folder(args.output) as folder:
        if model is None:
            datastore_folder.save(folder, translation_memory.arrays_of(memory), origin)
        else:
            from tfmann.decoding.memory_translator import write_datastore

            batch = hparams.infer_batch_size
            with progress("decoding", memory.sources.size) as count:
                write_datastore(folder, memory, origin, model.translator.model, batch, count)
    print_message(f"{args.output}: {_describe(memory)}{', with keys' if args.keys else ''}")


def _describe(memory: TranslationMemory) -> str:
    words = len(memory.targets.ids) + memory.targets.size
    left_out = f", {memory.left_out:,} with an empty side left out" if memory.left_out else ""
    return f"{memory.sources.size:,} pairs{left_out}, {words:,} entries"


def _load(args: argparse.Namespace, settings: dict[str, Any]) -> Model:
    import_tensorflow()
    from tfmann import api

    return api.load(args.model, args.ckpt, print_message, **settings)


def _dev_files(flag: str) -> tuple[str, str]:
    files = flag.split(",")
    if len(files) != 2 or not all(files):
        raise UsageError(f"--dev={flag}: expected two files with a comma between them")
    return files[0], files[1]


def _print_distances(model: Model, files: tuple[str, str]) -> None:
    """Prints quantiles of d_1 over the positions of a development set."""
    import numpy as np

    from tfmann.decoding.memory_translator import MemoryTranslator

    translator = model.translator
    assert isinstance(translator, MemoryTranslator)
    pairs = [(pair.source, pair.target) for pair in iter_parallel(*files)]
    distances = translator.least_distances(pairs)
    near = distances[np.isfinite(distances)]
    print(f"positions {len(distances)}, without an entry {len(distances) - len(near)}")
    if len(near):
        quantiles = np.quantile(near, [0.1, 0.25, 0.5, 0.75, 0.9])
        print("squared distance d_1 to the nearest entry, 10 25 50 75 90 %:")
        print("  " + "  ".join(f"{value:.4g}" for value in quantiles))
        if quantiles[2] < adaptation.SAME_PAIR:
            print("no translation_memory_tau: most of these pairs are in the memory: give others")
            return
        print("translation_memory_tau to try: half, one, two and four times the median,")
        print("  " + "  ".join(f"{quantiles[2] * factor:.4g}" for factor in (0.5, 1, 2, 4)))


if __name__ == "__main__":
    sys.exit(main())
