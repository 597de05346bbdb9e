"""What was measured, and what a memory did.

    tfmann report --out_dir=RUN --sentence="..."    inside one model, as page and PNG
    tfmann report memory ...                        the same of a line of a file, PNG only
    tfmann report page                              all results as one HTML page
    tfmann report readme                            the tables of a Markdown file
    tfmann report gallery ...                       one figure of each cell, at a sentence

``memory`` forces the reference, or else the model's own translation, of the document that the
sentence stands in. TensorFlow is imported when the command line is known to be right.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tfmann import hparams as hparams_module
from tfmann import usage
from tfmann.corpus.documents import beginnings
from tfmann.corpus.files import iter_documents, iter_lines, iter_parallel, replacing
from tfmann.errors import UsageError, UserError, status_of, stoppable
from tfmann.folder import HPARAMS
from tfmann.hparams import HParams
from tfmann.report import gallery, memory, readme
from tfmann.report.page import build, inside
from tfmann.report.page.absent import absent

if TYPE_CHECKING:
    from tfmann.api import Model, Trace


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command line; returns the exit status."""
    argv = list(sys.argv[1:] if argv is None else argv)
    if argv and argv[0].startswith("--") and argv[0] != "--help":
        argv = ["sentence", *argv]
    asked = _parser().parse_args(argv)
    with stoppable():
        return status_of(lambda: asked.command(asked))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tfmann report",
        description=str(__doc__),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(required=True)
    _add_sentence(commands)
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
    _add_results(commands)
    _add_gallery(commands)
    return parser


def _add_sentence(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    one = commands.add_parser(
        "sentence", help="translates text and shows what the memory did", allow_abbrev=False
    )
    one.set_defaults(command=_sentence)
    one.add_argument("--out_dir", required=True, help="folder of the run")
    one.add_argument("--ckpt", help="folder of a checkpoint, rather than the best")
    one.add_argument(
        "--sentence",
        required=True,
        action="append",
        help="text to translate; given again, the next sentence of the same document",
    )
    one.add_argument(
        "--reference",
        action="append",
        help="a translation of each sentence; the figures are of it then",
    )
    one.add_argument("--n_best", type=int, default=3, help="translations shown (default: 3)")
    one.add_argument("--output", help="folder of page and figures (default: OUT_DIR/sentence)")
    one.add_argument("--open", action="store_true", help="open the page in a browser")


def _add_results(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    one = commands.add_parser("page", help="all results as one HTML page", allow_abbrev=False)
    one.set_defaults(command=_page)
    one.add_argument("--out_dir", default="runs", help="where the runs are (default: runs)")
    one.add_argument("--output", help="the page (default: OUT_DIR/report.html)")
    one.add_argument("--synthetic", action="store_true", help="no sentences of real corpora")
    one.add_argument("--sentences", type=int, default=8, help="of each table (default: 8)")
    one.add_argument("--drawn", type=int, default=3, help="how many of them with figures")
    one.add_argument("--nofigures", action="store_true", help="load no model, draw nothing")
    one.add_argument(
        "--keep",
        action="store_true",
        help="of tables that have no finished runs, keep the sentences of the page at --output",
    )
    two = commands.add_parser("readme", help="the tables of a Markdown file", allow_abbrev=False)
    two.set_defaults(command=_readme)
    page = "docs/results.md"
    two.add_argument("--readme", default=page, help=f"the file (default: {page})")
    for each in (one, two):
        each.add_argument("--results_dir", default="results", help="the records (default: results)")


def _add_gallery(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    one = commands.add_parser(
        "gallery", help="one figure of each cell, at a sentence", allow_abbrev=False
    )
    one.set_defaults(command=_gallery)
    one.add_argument("--out_dir", required=True, help="folder of the runs, one of each cell")
    one.add_argument("--prefix", required=True, help="of the text: PREFIX.src, .tgt and .docs")
    one.add_argument("--sentence", required=True, type=int, help="which line, from 0")
    one.add_argument("--output", required=True, help="folder for CELL.png")


def _sentence(asked: argparse.Namespace) -> None:
    references = asked.reference
    if references and len(references) != len(asked.sentence):
        raise UsageError(
            f"there are {len(asked.sentence)} --sentence and {len(references)} --reference: "
            "each sentence needs one, or none has one"
        )
    hparams = usage.settings_of_model(asked.out_dir, {})
    most = hparams.beam_width if hparams.infer_mode == "beam_search" else 1
    if asked.n_best < 1:
        raise UsageError(f"--n_best={asked.n_best}: expected 1 or more")

    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    from tfmann import api

    settings = {"num_translations_per_input": min(asked.n_best, most)}
    model = api.load(asked.out_dir, asked.ckpt, _note, **settings)
    folder = asked.output or os.path.join(asked.out_dir, "sentence")
    path = inside.write(model, asked.sentence, references, folder, _note)
    if asked.open:
        webbrowser.open(Path(path).resolve().as_uri())


def _page(asked: argparse.Namespace) -> None:
    for name in ("sentences", "drawn"):
        if getattr(asked, name) < 0:
            raise UsageError(f"--{name}: expected 0 or more, not {getattr(asked, name)}")
    wanted = build.Wanted(asked.out_dir, asked.sentences, asked.drawn, asked.synthetic)
    output = asked.output or os.path.join(asked.out_dir, "report.html")
    memory.make_folder(os.path.dirname(output) or ".")
    tracer = None if asked.nofigures else _tracer
    before = "\n".join(iter_lines(output)) if asked.keep else ""
    results = _results(asked)
    for line in absent(asked.out_dir):
        _note(line)
    text = build.page(results, wanted, tracer, _note, before)
    with replacing(output) as file:
        file.write(text.encode("utf-8"))
    _note(f"{output} ({len(text.encode('utf-8')) / 2**20:.1f} MB)")


def _readme(asked: argparse.Namespace) -> None:
    changed = readme.write(Path(asked.readme), _results(asked))
    _note(f"{asked.readme} {'is written' if changed else 'is as the results have it'}")


def _gallery(asked: argparse.Namespace) -> None:
    runs = sorted(str(path.parent) for path in Path(asked.out_dir).glob(f"*/{HPARAMS}"))
    if not runs:
        raise UserError(f"{asked.out_dir} has no folder of a run")
    cells = {run: usage.settings_of_model(run, {}).cell for run in runs}
    gallery.write(cells, asked.prefix, asked.sentence, asked.output, _tracer, _note)


def _results(asked: argparse.Namespace) -> Path:
    if not os.path.isdir(asked.results_dir):
        raise UserError(f"there is no folder {asked.results_dir}: --results_dir has the records")
    return Path(asked.results_dir)


def _tracer(
    out_dir: str, pairs: Sequence[tuple[str, str]], documents: Sequence[int] | None
) -> list[Trace]:
    """Forces pairs through the model of a folder."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow as tf

    from tfmann import api

    tf.get_logger().setLevel("ERROR")  # each model is traced anew, and has to be
    return api.load(out_dir).traces(pairs, documents)


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
