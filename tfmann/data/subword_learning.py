"""Learning of byte pairs and sentence pieces from text.

Byte pair encoding: Sennrich, Haddow & Birch 2016, arXiv 1508.07909, with the authors'
subword-nmt. SentencePiece: Kudo & Richardson 2018, arXiv 1808.06226, with the authors' library.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from tfmann.data import normalization
from tfmann.data.subword import Segmenter, WordSegmenter, sentencepiece_failure
from tfmann.data.text_files import iter_lines, write_lines
from tfmann.data.vocab import SPECIALS
from tfmann.errors import UsageError, UserError
from tfmann.utils.files import PathLike, atomic_write

_USUAL_LINE = 4192  # bytes; SentencePiece's default, which is part of a model's file
_MOST_PIECES = 1_000_000  # that SentencePiece considers
_CHARACTERS = 0.25  # share of the pieces that single characters may have, whatever their frequency
_SHOWN = 20  # characters in a message
_COVERAGE = 0.9995  # the least share of the text whose characters are pieces; the library's default


def learn_bpe(
    input_paths: Iterable[PathLike],
    output_path: PathLike,
    num_merges: int,
    segmenters: Sequence[Segmenter] = (),
) -> None:
    """Learns merge operations jointly over several files (arXiv 1508.07909, section 3.2).

    Stops early, with fewer merges, when no pair of symbols occurs twice.

    Args:
      input_paths: the files.
      output_path: the file to write.
      num_merges: at most.
      segmenters: give the words of each file; without them, these are between spaces.

    Raises:
      UserError: a file cannot be read or written, or there is nothing to merge.
    """
    if num_merges < 1:
        raise UsageError(f"num_merges={num_merges}: at least 1 merge must be learned")
    from subword_nmt.learn_bpe import learn_bpe as learn

    paths = list(input_paths)
    text = (
        " ".join(segmenter.segment(line))
        for path, segmenter in zip(paths, segmenters or [WordSegmenter()] * len(paths))
        for line in iter_lines(path)
    )
    codes = io.StringIO(newline="\n")
    try:
        with _quiet_unless_watched():
            learn(text, codes, num_merges)
    except ValueError as error:
        # subword-nmt takes the maximum of an empty list when no pair of symbols is left.
        if "empty" not in str(error):
            raise
    merges = codes.getvalue().split("\n")[:-1]
    if len(merges) < 2:  # the version line alone
        raise UserError(f"{_names(paths)}: no two symbols occur together twice; nothing to merge")
    write_lines(output_path, merges)


def train_sentencepiece(
    input_paths: Iterable[PathLike],
    model_prefix: PathLike,
    vocab_size: int,
    log: Callable[[str], None] = print,
) -> str:
    """Trains a unigram SentencePiece model on all lines.

    The same text gives the same file: lines are not sampled, and one thread is used, because the
    sums of several threads depend on how the lines are divided. The library would skip lines with
    U+2585, which becomes a space, and long lines, so that the limit is raised.

    Every character is a piece, unless there are so many that they would take more than a quarter of
    the pieces, as in Chinese. The rarest of these become `<unk>`.

    Args:
      input_paths: the files.
      model_prefix: of the path to write.
      vocab_size: the number of pieces.
      log: takes a line about characters that are no piece.

    Returns:
      the path, `model_prefix`.model.

    Raises:
      UsageError: no text allows this vocab_size.
      UserError: a file cannot be read or written, or the text does not allow this vocab_size.
    """
    if not len(SPECIALS) < vocab_size <= _MOST_PIECES:
        raise UsageError(
            f"vocab_size={vocab_size}: SentencePiece takes from {len(SPECIALS) + 1} to "
            f"{_MOST_PIECES:,} pieces"
        )
    paths = list(input_paths)
    characters, longest = _count_characters(paths)
    coverage = _coverage(characters, int(_CHARACTERS * vocab_size))
    try:
        model = _train_pieces(paths, vocab_size, coverage, longest)
    except RuntimeError as error:
        raise UserError(
            f"SentencePiece cannot train vocab_size={vocab_size} on {_names(paths)}: "
            f"{sentencepiece_failure(error) or 'no text'}"
        ) from None
    path = f"{os.fspath(model_prefix)}.model"
    with atomic_write(path) as stream:
        stream.write(model)
    if unknown := _unknown_characters(model, characters):
        log(
            f"{len(unknown):,} of {len(characters):,} different characters are too rare for "
            f"{vocab_size:,} pieces and become <unk>: {' '.join(unknown[:_SHOWN])}"
            f"{' ...' if len(unknown) > _SHOWN else ''}"
        )
    return path


def _train_pieces(
    paths: Sequence[PathLike], vocab_size: int, coverage: float, longest: int
) -> bytes:
    """Returns a model of the lines; `longest` is the number of bytes of the longest one."""
    import sentencepiece

    model = io.BytesIO()

    def train(rules: str) -> None:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=(line.replace("\u2585", " ") for line in _all_lines(paths)),
            model_writer=model,
            vocab_size=vocab_size,
            character_coverage=coverage,
            max_sentence_length=max(longest, _USUAL_LINE),
            num_threads=1,
            minloglevel=2,
            normalization_rule_tsv=rules,
        )

    with normalization.rule_file() as rules:
        _run_interruptibly(lambda: train(rules))
    return normalization.without_rule_file(model.getvalue())


def _unknown_characters(model: bytes, characters: Iterable[str]) -> list[str]:
    import sentencepiece

    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    return [c for c in characters if processor.unk_id() in processor.encode(c)]


def _count_characters(paths: Sequence[PathLike]) -> tuple[dict[str, int], int]:
    """Counts each character, most frequent first, and the bytes of the longest line."""
    counts: Counter[str] = Counter()
    longest = 0
    for line in _all_lines(paths):
        counts.update(line)
        longest = max(longest, len(line.encode()))
    return dict(counts.most_common()), longest


def _coverage(characters: Mapping[str, int], most: int) -> float:
    """Returns the share of the text that the most frequent characters make up, 1 for all of them.

    Args:
      characters: the number of occurrences of each, most frequent first.
      most: the number of characters that may be pieces; more where the text needs them.
    """
    if len(characters) <= most:
        return 1.0
    share = sum(itertools.islice(characters.values(), most)) / sum(characters.values())
    return max(_COVERAGE, share)


def _run_interruptibly(work: Callable[[], None]) -> None:
    """Runs a library's code in a thread, so that a signal need not wait until it returns."""
    errors: list[Exception] = []

    def run() -> None:
        try:
            work()
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]


def _quiet_unless_watched() -> contextlib.AbstractContextManager:
    """Keeps subword-nmt's progress bar, thousands of lines, out of log files."""
    if sys.stderr is not None and sys.stderr.isatty():
        return contextlib.nullcontext()
    return contextlib.redirect_stderr(io.StringIO())


def _all_lines(paths: Sequence[PathLike]) -> Iterator[str]:
    for path in paths:
        yield from iter_lines(path)


def _names(paths: Sequence[PathLike]) -> str:
    return ", ".join(str(path) for path in paths)
