"""Statistics of attention, heads and cache: `tfmann inspect --model=DIR --input=FILE`.

The model is run over its own translations of the file, over a reference, or over translations that
it has made before. The same is measured of the same model with untrained weights, over the same
words. With --attention_of, another model is run over them too, and the attention of the two is
compared.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tfmann import config
from tfmann.cli import validation
from tfmann.cli.model_flags import add_model
from tfmann.data import input_checks
from tfmann.data.text_files import iter_lines, iter_parallel, number_lines, read_documents
from tfmann.errors import UsageError, UserError, interruptible, print_message, run_command
from tfmann.utils.arguments import ArgumentParser
from tfmann.utils.files import atomic_write
from tfmann.utils.provenance import provenance
from tfmann.utils.tensorflow_import import import_tensorflow

if TYPE_CHECKING:
    import numpy as np

    from tfmann.api import Model
    from tfmann.decoding.translation import Forced
    from tfmann.evaluation.inspection import Inspection

_CHUNK = 100  # sentences between two lines of progress, at least
_FREQUENT = 100  # words of the target that count as frequent

_EXAMPLES = """\
examples:
  tfmann inspect --model=runs/mine --input=test.de
  tfmann inspect --model=runs/mine --input=test.de --reference=test.en --output=addresses.json
  tfmann inspect --model=runs/cache --input=test.zh --documents=test.docs --sentences=500
  tfmann inspect --model=runs/ntm --attention_of=runs/luong --input=test.de --reference=test.en"""


class Text(NamedTuple):
    """The sentences that are measured, without blank ones.

    Attributes:
      sources: their text.
      targets: their translations; None if the model has to translate them.
      documents: a number of each sentence's document, which no other document has.
      total: sentences of the whole file.
    """

    sources: list[str]
    targets: list[str] | None
    documents: list[int]
    total: int


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command line; returns the exit status."""
    args = _parser().parse_args(argv)
    with interruptible():
        return run_command(lambda: _inspect(args))


def _parser() -> argparse.ArgumentParser:
    parser = ArgumentParser(
        prog="tfmann inspect",
        description=str(__doc__),
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_model(parser)
    parser.add_argument("--input", required=True, help="source text, one sentence a line")
    targets = parser.add_mutually_exclusive_group()
    targets.add_argument("--reference", help="a translation of each line, to run the model over")
    targets.add_argument("--translations", help="the model's own earlier translations of --input")
    parser.add_argument(
        "--documents",
        help="a number for the document of each line; without it a blank line ends a document",
    )
    parser.add_argument(
        "--attention_of",
        metavar="DIR",
        help="another run, to compare its attention with this one's",
    )
    parser.add_argument("--sentences", type=int, help="only the first of the file, this many")
    parser.add_argument("--output", help="file to write the statistics to, as JSON")
    parser.add_argument(
        "--trained_only", action="store_true", help="leave out the untrained weights: half the time"
    )
    return parser


def _inspect(args: argparse.Namespace) -> None:
    if args.sentences is not None and args.sentences < 1:
        raise UsageError(f"--sentences={args.sentences}: expected 1 or more")
    folders = [folder for folder in (args.model, args.attention_of) if folder]
    hparams, *of_others = (config.settings_of_model(folder, {}) for folder in folders)
    inputs = {f"--{name}": getattr(args, name)
              for name in ("input", "reference", "translations", "documents")}  # fmt: skip
    input_checks.refuse_overwriting({"output": args.output}, inputs)
    for folder in folders:
        input_checks.refuse_overwriting_model({"output": args.output}, folder)
    input_checks.require_folder(args.output, "output")
    text = _read(args)
    by_document = any(run.reads_documents for run in (hparams, *of_others))
    if args.documents and not by_document:
        validation.require_documents("documents", hparams)
    number = len(set(text.documents))

    import_tensorflow()
    from tfmann import api
    from tfmann.evaluation import inspection

    model = api.load(args.model, args.ckpt, print_message)
    other = api.load(args.attention_of, log=print_message) if args.attention_of else None
    if text.targets is None:
        text = _translate(model, text, by_document)
    trained = _measure(model, text, by_document, "trained weights", other)
    untrained = None
    if not args.trained_only:
        untrained = _measure(model.untrained(), text, by_document, "untrained weights", other)
    recorded = {
        "cell": hparams.cell,
        "forced": "reference" if args.reference else "translations",
        "sentences_of_file": text.total,
        "unit": "document" if by_document else "sentence",
        "untrained_seed": hparams.random_seed if untrained else None,
        "frequent_words": _FREQUENT,
        **inspection.record(trained, untrained),
    }
    if of_others:
        recorded["attention_of"] = of_others[0].cell
    print(_heading(recorded))
    print(inspection.table(recorded))
    if args.output:
        _write(args.output, {**recorded, **provenance()})
    if by_document and number < inspection.FEW_UNITS:
        few = f"{number} document{'s' if number > 1 else ''}"
        print_message(f"the intervals are of {few}: too few to say much about others")


def _read(args: argparse.Namespace) -> Text:
    """Reads the files, and leaves out blank sources.

    Raises:
      UserError: a file is missing or empty, or the numbers of lines differ.
    """
    target = args.reference or args.translations
    if target:
        pairs = list(iter_parallel(args.input, target, args.documents))
        sources, targets = [pair.source for pair in pairs], [pair.target for pair in pairs]
    else:
        sources, targets = list(iter_lines(args.input)), []
    total = sum(bool(line.strip()) for line in sources)
    if not total:
        raise UserError(f"{args.input} has no sentence: expected one on each line")
    documents = _documents(args, sources)
    real = [number for number, line in enumerate(sources) if line.strip()][: args.sentences]
    return Text(
        [sources[number] for number in real],
        [targets[number] for number in real] if target else None,
        [documents[number] for number in real],
        total,
    )


def _documents(args: argparse.Namespace, sources: Sequence[str]) -> list[int]:
    if not args.documents:
        return [number for _, number in number_lines(sources, None)]
    from tfmann.data.documents import document_starts  # and with it NumPy

    ids = read_documents(args.documents, args.input, len(sources))
    return document_starts(ids).tolist()


def _translate(model: Model, text: Text, by_document: bool) -> Text:
    print_message(f"translating {len(text.sources):,} sentences")
    n_best = model.translate(text.sources, documents=text.documents if by_document else None)
    return text._replace(targets=[translations[0].text for translations in n_best])


def _measure(
    model: Model, text: Text, by_document: bool, name: str, other: Model | None
) -> Inspection:
    """Runs a model over the pairs, a part of the file at a time.

    Args:
      model: the model.
      text: the pairs.
      by_document: whether units are documents.
      name: of its weights, for the lines of progress.
      other: a model whose attention is compared with its own.

    Raises:
      UserError: the attention of the two cannot be compared.
    """
    from tfmann.cells.diagnostics import VECTORS
    from tfmann.evaluation.cache_statistics import frequent_words
    from tfmann.evaluation.inspection import Inspection
    from tfmann.evaluation.trace import Trace

    assert text.targets is not None
    words = map(model.translator.languages.target.segmenter.segment, text.targets)
    inspected = Inspection(frequent_words(words, _FREQUENT))
    for begin, end in _chunks(text.documents if by_document else None, len(text.sources)):
        part = slice(begin, end)
        documents = text.documents[part] if by_document else None
        pairs = list(zip(text.sources[part], text.targets[part]))
        forced = model.translator.force(pairs, VECTORS, documents)
        others = other.translator.force(pairs, VECTORS, documents) if other else []
        gains = _gains(model, pairs, forced)
        for index, pair in enumerate(forced):
            unit = text.documents[begin + index] if by_document else begin + index
            of_other = Trace(others[index]) if others else None
            try:
                inspected.add(Trace(pair), unit, of_other, gains[index] if gains else None)
            except ValueError as error:
                raise UserError(f"--attention_of: {error}") from None
        print_message(f"{name}: {end:,} of {len(text.sources):,} sentences")
    return inspected


def _gains(
    model: Model, pairs: Sequence[tuple[str, str]], forced: Sequence[Forced]
) -> list[np.ndarray]:
    """Returns what the history adds to the log-probability of each word; none without a cache."""
    if not config.cell_spec(model.hparams.cell).has_cache:
        return []
    alone = model.translator.force(pairs, documents=range(len(pairs)))
    return [
        with_history.word_log_probs - without.word_log_probs
        for with_history, without in zip(forced, alone)
    ]


def _chunks(documents: Sequence[int] | None, number: int) -> Iterator[tuple[int, int]]:
    """Yields begin and end of parts of at least `_CHUNK` sentences that cut no document."""
    begin = 0
    for end in range(1, number + 1):
        is_complete = documents is None or end == number or documents[end] != documents[end - 1]
        if end == number or (end - begin >= _CHUNK and is_complete):
            yield begin, end
            begin = end


def _write(path: str, recorded: dict[str, Any]) -> None:
    with atomic_write(path) as file:
        file.write(f"{json.dumps(recorded, ensure_ascii=False, indent=1)}\n".encode())
    print_message(path)


def _heading(recorded: dict[str, Any]) -> str:
    words = {"reference": "a reference", "translations": "its own translations"}
    units = f"{recorded['units']:,} {recorded['unit']}{'s' if recorded['units'] > 1 else ''}"
    name = config.cell_spec(recorded["cell"]).class_name
    if "attention_of" in recorded:
        name += f", compared with {config.cell_spec(recorded['attention_of']).class_name},"
    return (
        f"{name} over {words[recorded['forced']]} of {recorded['sentences']:,} of "
        f"{recorded['sentences_of_file']:,} sentences; in brackets "
        f"95% of resamples of {units}\n"
    )


if __name__ == "__main__":
    sys.exit(main())
