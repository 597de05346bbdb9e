"""Figures of a trained model's memory at a sentence: ``python -m tfmann.report memory``.

Forces the reference, or else the model's own translation, of the document that the sentence stands
in, and draws where the cell looked, what it addressed and what its cache held. TensorFlow is
imported when the command line is known to be right.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tfmann import hparams as hparams_module
from tfmann import usage
from tfmann.corpus.documents import beginnings
from tfmann.corpus.files import iter_documents, iter_lines, iter_parallel
from tfmann.errors import UsageError, UserError
from tfmann.hparams import HParams
from tfmann.report import memory

if TYPE_CHECKING:
    from tfmann.api import Model, Trace


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command line; returns the exit status."""
    asked = _parser().parse_args(argv)
    try:
        asked.command(asked)
    except UserError as error:
        print(f"tfmann: {error}", file=sys.stderr)
        return error.exit_status
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tfmann.report", description=str(__doc__), allow_abbrev=False
    )
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser(
        "memory", help="attention, rounds, addresses, cache of a sentence", allow_abbrev=False
    )
    one.set_defaults(command=_memory)
    one.add_argument("--out_dir", required=True, help="folder of the run")
    one.add_argument("--ckpt", help="folder of a checkpoint, rather than the best")
    one.add_argument("--input", required=True, help="source text, a sentence a line")
    one.add_argument("--reference", help="its translation; without it the model's own is taken")
    one.add_argument(
        "--docs",
        help="a number for the document of each line; without it a blank line ends a document",
    )
    one.add_argument("--sentence", required=True, type=int, help="which line, from 0")
    one.add_argument("--figures", required=True, help="folder for the figures")
    return parser


def _memory(asked: argparse.Namespace) -> None:
    hparams = usage.settings_of_model(asked.out_dir, {})
    if asked.docs and not hparams_module.document_memory(hparams.cell):
        raise UsageError(
            f"--docs is of no use: the cell {hparams.cell!r} translates every sentence by itself"
        )
    sources, targets, documents = _read(asked)
    if not 0 <= asked.sentence < len(sources):
        raise UserError(
            f"--sentence={asked.sentence}: {asked.input} has the sentences 0 to {len(sources) - 1}"
        )
    if not sources[asked.sentence].strip():
        raise UserError(f"--sentence={asked.sentence}: that line of {asked.input} is blank")
    memory.make_folder(asked.figures)  # not found out when all is computed
    first, end = _needed(hparams, sources, documents, asked.sentence)

    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    from tfmann import api

    model = api.load(asked.out_dir, asked.ckpt, _note)
    traces = _traces(
        model,
        sources[first:end],
        None if targets is None else targets[first:end],
        None if documents is None else documents[first:end],
    )
    trace = traces[asked.sentence - first]
    memory.write_sentence(trace, asked.sentence, asked.figures, _note)
    if trace.slots is not None:
        memory.write_recency(traces, os.path.basename(asked.input), asked.figures, _note)


def _read(asked: argparse.Namespace) -> tuple[list[str], list[str] | None, list[int] | None]:
    """Source lines, references and documents' ids, as far as they are given."""
    if asked.reference:
        pairs = list(iter_parallel(asked.input, asked.reference, asked.docs))
        documents = [pair.document for pair in pairs] if asked.docs else None
        return [pair.source for pair in pairs], [pair.target for pair in pairs], documents
    sources = list(iter_lines(asked.input))
    if not sources:
        raise UserError(f"{asked.input} is empty: there is no sentence")
    if not asked.docs:
        return sources, None, None
    documents = list(iter_documents(asked.docs))
    if len(documents) != len(sources):
        raise UserError(
            f"unequal line counts: {asked.input} has {len(sources):,}, {asked.docs} has "
            f"{len(documents):,} lines; each line needs the id of its document"
        )
    return sources, None, documents


def _needed(
    hparams: HParams, sources: Sequence[str], documents: Sequence[int] | None, sentence: int
) -> tuple[int, int]:
    """The first and the end of the lines that have to go through the model.

    All, for the recency of a cache; else what stands before the sentence in its document, for a
    cell that looks at it; else the sentence.
    """
    looks_at = hparams_module.document_memory(hparams.cell)
    if looks_at == "cache":
        return 0, len(sources)
    if not looks_at:
        return sentence, sentence + 1
    if documents is None:
        blank = (not source.strip() for source in sources)
        documents = [0, *itertools.accumulate(blank)][:-1]  # the line after a blank one is new
    return int(beginnings(documents)[sentence]), sentence + 1


def _traces(
    model: Model,
    sources: Sequence[str],
    targets: Sequence[str] | None,
    documents: Sequence[int] | None,
) -> list[Trace]:
    """Forces the references, or the best translations."""
    if targets is None:
        targets = [n_best[0].text for n_best in model.translate(sources, documents=documents)]
    return model.traces(zip(sources, targets), documents)


def _note(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
