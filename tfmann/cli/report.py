"""Reports of results and of memories at work: `tfmann report`.

    tfmann report --model=RUN --sentence="..."      one model's memory, as page and PNG
    tfmann report memory ...                        the same for a line of a file, no page
    tfmann report runs --out_dir=runs               scores, curves and sentences of your runs
    tfmann report page                              all results as one HTML page
    tfmann report readme                            the tables of Markdown files
    tfmann report gallery ...                       one figure of each cell, at a sentence

`memory` runs the model over a reference, or else over its own translation. If the model reads other
sentences, those before the sentence in its document are included.
"""

from __future__ import annotations

import argparse
import os
import sys
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tfmann import config
from tfmann.cli import validation
from tfmann.cli.model_flags import add_model, add_settings, given_settings
from tfmann.config import HParams
from tfmann.config.search import WORD_MEMORY_SETTINGS
from tfmann.data import memory_files
from tfmann.data.documents import document_starts
from tfmann.data.text_files import iter_lines, iter_parallel, number_lines, read_documents
from tfmann.errors import UsageError, UserError, interruptible, print_message, run_command
from tfmann.papers import markdown_blocks
from tfmann.report import difference_chart, gallery, results_page, runs_page, sentence_page
from tfmann.report.runs import unfinished_runs
from tfmann.utils.arguments import ArgumentParser
from tfmann.utils.files import atomic_write
from tfmann.utils.run_folder import HPARAMS, RUNS
from tfmann.utils.tensorflow_import import import_tensorflow
from tfmann.visualization import sentence_figures

if TYPE_CHECKING:
    from tfmann.api import Model, Trace


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command line; returns the exit status."""
    argv = list(sys.argv[1:] if argv is None else argv)
    if argv and argv[0].startswith("--") and argv[0] != "--help":
        argv = ["sentence", *argv]
    args = _parser().parse_args(argv)
    with interruptible():
        return run_command(lambda: args.command(args))


def _parser() -> argparse.ArgumentParser:
    parser = ArgumentParser(
        prog="tfmann report",
        description=str(__doc__),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True)
    _add_sentence(commands)
    _add_memory(commands)
    _add_runs(commands)
    _add_results(commands)
    _add_gallery(commands)
    return parser


def _add_memory(commands: argparse._SubParsersAction[ArgumentParser]) -> None:
    parser = commands.add_parser("memory", help="attention, rounds, addresses, cache of a sentence")
    parser.set_defaults(command=_memory)
    add_model(parser)
    parser.add_argument("--input", required=True, help="source text, a sentence a line")
    parser.add_argument("--reference", help="its translation; without it the model's own is taken")
    parser.add_argument(
        "--docs",
        "--documents",
        help="a number for the document of each line; without it a blank line ends a document",
    )
    parser.add_argument("--sentence", required=True, type=int, help="which line, from 0")
    parser.add_argument("--figures", required=True, help="folder for the figures")
    add_settings(parser, WORD_MEMORY_SETTINGS)


def _add_sentence(commands: argparse._SubParsersAction[ArgumentParser]) -> None:
    parser = commands.add_parser("sentence", help="translates text and shows what the memory did")
    parser.set_defaults(command=_sentence)
    add_model(parser)
    parser.add_argument(
        "--sentence",
        required=True,
        action="append",
        help="text to translate; given again, the next sentence of the same document",
    )
    parser.add_argument(
        "--reference",
        action="append",
        help="a translation of each sentence, which the figures then show",
    )
    parser.add_argument(
        "--n_best", type=int, help="translations shown, at most the beam's width (default: 3)"
    )
    parser.add_argument("--output", help="folder of page and figures (default: MODEL/sentence)")
    add_settings(parser, WORD_MEMORY_SETTINGS)
    parser.add_argument("--open", action="store_true", help="open the page in a browser")


def _add_runs(commands: argparse._SubParsersAction[ArgumentParser]) -> None:
    parser = commands.add_parser("runs", help="runs of your own, side by side on an HTML page")
    parser.set_defaults(command=_runs)
    parser.add_argument("--out_dir", default=RUNS, help="a folder with runs (default: runs)")
    parser.add_argument("--output", help="the page (default: OUT_DIR/runs.html)")
    parser.add_argument("--open", action="store_true", help="open the page in a browser")
    _add_choice_of_sentences(parser, "set")


def _add_choice_of_sentences(parser: argparse.ArgumentParser, of_each: str) -> None:
    parser.add_argument("--sentences", type=int, default=8, help=f"of each {of_each} (default: 8)")
    parser.add_argument("--drawn", type=int, default=3, help="how many of them with figures")
    parser.add_argument("--nofigures", action="store_true", help="load no model, draw nothing")


def _add_results(commands: argparse._SubParsersAction[ArgumentParser]) -> None:
    page_parser = commands.add_parser("page", help="all results as one HTML page")
    page_parser.set_defaults(command=_page)
    page_parser.add_argument("--out_dir", default=RUNS, help="where the runs are (default: runs)")
    page_parser.add_argument("--output", help="the page (default: OUT_DIR/report.html)")
    page_parser.add_argument(
        "--synthetic", action="store_true", help="no sentences of real corpora"
    )
    _add_choice_of_sentences(page_parser, "table")
    page_parser.add_argument(
        "--keep",
        action="store_true",
        help="for tables without finished runs, keep the sentences of the page at --output",
    )
    readme_parser = commands.add_parser("readme", help="the tables of Markdown files")
    readme_parser.set_defaults(command=_readme)
    readme_parser.add_argument(
        "--readme",
        default="docs/results",
        help="a file, or the folder of several (default: %(default)s)",
    )
    for parser in (page_parser, readme_parser):
        parser.add_argument(
            "--results_dir", default="results", help="the records (default: results)"
        )


def _add_gallery(commands: argparse._SubParsersAction[ArgumentParser]) -> None:
    parser = commands.add_parser("gallery", help="one figure of each cell, at a sentence")
    parser.set_defaults(command=_gallery)
    parser.add_argument("--out_dir", required=True, help="folder of the runs, one of each cell")
    parser.add_argument("--prefix", required=True, help="of the text: PREFIX.src, .tgt and .docs")
    parser.add_argument("--sentence", required=True, type=int, help="which line, from 0")
    parser.add_argument("--output", required=True, help="folder for CELL.png")


def _sentence(args: argparse.Namespace) -> None:
    references = args.reference
    if references and len(references) != len(args.sentence):
        raise UsageError(
            f"there are {len(args.sentence)} --sentence and {len(references)} --reference: "
            "each sentence needs one, or none has one"
        )
    memory = given_settings(args, WORD_MEMORY_SETTINGS)
    hparams = config.settings_of_command(args.model, memory)
    memory_files.require(hparams)
    most = hparams.beam_width if hparams.infer_mode == "beam_search" else 1
    if args.n_best is not None and not 1 <= args.n_best <= most:
        expected = f"1 to {most}" if most > 1 else "1"
        raise UsageError(
            f"--n_best={args.n_best}: expected {expected}, as many as this model's search finds"
        )

    import_tensorflow()
    from tfmann import api

    settings = {**memory, "num_translations_per_input": args.n_best or min(3, most)}
    model = api.load(args.model, args.ckpt, print_message, **settings)
    folder = args.output or os.path.join(args.model, "sentence")
    path = sentence_page.write(model, args.sentence, references, folder, print_message)
    if args.open:
        webbrowser.open(Path(path).resolve().as_uri())


def _runs(args: argparse.Namespace) -> None:
    _check_choice_of_sentences(args)
    if not os.path.isdir(args.out_dir):
        raise UserError(f"there is no folder {args.out_dir}: --out_dir has the runs of the page")
    options = results_page.ExampleOptions(args.out_dir, args.sentences, args.drawn)
    output = args.output or os.path.join(args.out_dir, "runs.html")
    sentence_figures.make_folder(os.path.dirname(output) or ".")
    text = runs_page.render_page(options, None if args.nofigures else _tracer, print_message)
    _write_page(output, text)
    if args.open:
        webbrowser.open(Path(output).resolve().as_uri())


def _check_choice_of_sentences(args: argparse.Namespace) -> None:
    for name in ("sentences", "drawn"):
        if getattr(args, name) < 0:
            raise UsageError(f"--{name}: expected 0 or more, not {getattr(args, name)}")


def _page(args: argparse.Namespace) -> None:
    _check_choice_of_sentences(args)
    options = results_page.ExampleOptions(args.out_dir, args.sentences, args.drawn, args.synthetic)
    output = args.output or os.path.join(args.out_dir, "report.html")
    sentence_figures.make_folder(os.path.dirname(output) or ".")
    tracer = None if args.nofigures else _tracer
    earlier_page = "\n".join(iter_lines(output)) if args.keep else ""
    results = _results_dir(args)
    for line in unfinished_runs(args.out_dir):
        print_message(line)
    text = results_page.render_page(results, options, tracer, print_message, earlier_page)
    _write_page(output, text)


def _write_page(path: str, text: str) -> None:
    content = text.encode("utf-8", "backslashreplace")  # names of folders may be any bytes
    with atomic_write(path) as file:
        file.write(content)
    print_message(f"{path} ({len(content) / 2**20:.1f} MB)")


def _readme(args: argparse.Namespace) -> None:
    pages, results = markdown_blocks.pages(Path(args.readme)), _results_dir(args)
    changed = markdown_blocks.update_files(pages, results)
    difference_chart.write_figures(pages, results)
    for page, is_changed in zip(pages, changed):
        print_message(f"{page} {'is written' if is_changed else 'is as the results have it'}")


def _gallery(args: argparse.Namespace) -> None:
    runs = sorted(str(path.parent) for path in Path(args.out_dir).glob(f"*/{HPARAMS}"))
    if not runs:
        raise UserError(f"{args.out_dir} has no folder of a run")
    cells = {run: config.settings_of_model(run, {}).cell for run in runs}
    gallery.write(cells, args.prefix, args.sentence, args.output, _tracer, print_message)


def _results_dir(args: argparse.Namespace) -> Path:
    if not os.path.isdir(args.results_dir):
        raise UserError(
            f"there is no folder {args.results_dir}: --results_dir has the records of `tfmann "
            "reproduce`. `tfmann report runs` makes a page of other runs"
        )
    return Path(args.results_dir)


def _tracer(
    out_dir: str, pairs: Sequence[tuple[str, str]], documents: Sequence[int] | None
) -> list[Trace]:
    """Traces a forced decoding of pairs by the model of a folder."""
    import_tensorflow()
    import tensorflow as tf

    from tfmann import api

    tf.get_logger().setLevel("ERROR")  # hides that each model is compiled again, as it must be
    return api.load(out_dir).traces(pairs, documents)


def _memory(args: argparse.Namespace) -> None:
    memory = given_settings(args, WORD_MEMORY_SETTINGS)
    hparams = config.settings_of_command(args.model, memory)
    memory_files.require(hparams)
    if args.docs:
        validation.require_documents("docs", hparams)
    sources, targets, documents = _read(args)
    if not 0 <= args.sentence < len(sources):
        raise UserError(
            f"--sentence={args.sentence}: {args.input} has the sentences 0 to {len(sources) - 1}"
        )
    if not sources[args.sentence].strip():
        raise UserError(f"--sentence={args.sentence}: that line of {args.input} is blank")
    sentence_figures.make_folder(args.figures)  # before the computation, so that it fails early
    first, end = _needed_lines(hparams, sources, documents, args.sentence)

    import_tensorflow()
    from tfmann import api

    model = api.load(args.model, args.ckpt, print_message, **memory)
    traces = _traces(
        model,
        sources[first:end],
        None if targets is None else targets[first:end],
        None if documents is None else documents[first:end],
    )
    trace = traces[args.sentence - first]
    sentence_figures.write_sentence(trace, args.sentence, args.figures, print_message)
    if trace.slots is not None:
        sentence_figures.write_recency(
            traces, os.path.basename(args.input), args.figures, print_message
        )


def _read(args: argparse.Namespace) -> tuple[list[str], list[str] | None, list[int] | None]:
    """Reads source lines, and references and document ids where they are given."""
    if args.reference:
        pairs = list(iter_parallel(args.input, args.reference, args.docs))
        documents = [pair.document for pair in pairs] if args.docs else None
        return [pair.source for pair in pairs], [pair.target for pair in pairs], documents
    sources = list(iter_lines(args.input))
    if not sources:
        raise UserError(f"{args.input} is empty: there is no sentence")
    documents = read_documents(args.docs, args.input, len(sources)) if args.docs else None
    return sources, None, documents


def _needed_lines(
    hparams: HParams, sources: Sequence[str], documents: Sequence[int] | None, sentence: int
) -> tuple[int, int]:
    """Returns the range of lines that the model has to translate to show one of them.

    The recency of a cache needs all lines. A model that reads other sentences needs those before
    this one in its document; any other model needs only the sentence.
    """
    if config.cell_spec(hparams.cell).has_cache:
        return 0, len(sources)
    if not hparams.reads_documents:
        return sentence, sentence + 1
    if documents is None:
        documents = [number for _, number in number_lines(sources, None)]
    return int(document_starts(documents)[sentence]), sentence + 1


def _traces(
    model: Model,
    sources: Sequence[str],
    targets: Sequence[str] | None,
    documents: Sequence[int] | None,
) -> list[Trace]:
    """Traces a forced decoding of the references, or of the best translations."""
    if targets is not None:
        return model.traces(zip(sources, targets), documents)
    best = [n_best[0] for n_best in model.translate(sources, documents=documents)]
    return model.trace_translations(best, documents)


if __name__ == "__main__":
    sys.exit(main())
