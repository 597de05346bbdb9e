"""From a line to tokens and back: words, byte pairs, or sentence pieces.

Byte pair encoding: Sennrich, Haddow & Birch 2016, arXiv 1508.07909, with the authors'
subword-nmt. SentencePiece: Kudo & Richardson 2018, arXiv 1808.06226, through tensorflow_text.

No token holds a space, tab, CR or LF, so that every token fits on a line of a vocabulary file;
other characters that Unicode calls white space (U+00A0, U+2028 ...) stay inside tokens.
"""

from __future__ import annotations

import abc
import hashlib
import io
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, final

from tfmann.corpus.files import PathLike, iter_lines, open_binary, replacing, write_lines
from tfmann.corpus.vocab import WHITE_SPACE, Vocabulary
from tfmann.errors import UsageError, UserError

SUBWORD_OPTIONS = ("", "bpe", "spm")

SEPARATOR = "@@"  # what subword-nmt puts after a unit that does not end its word
_JOINT = re.compile(r"@@ |@@ ?$")
_CODES_VERSION = re.compile(r"#version: 0\.[12]")
_REMEMBERED_WORDS = 500_000  # segmented words kept, so that memory does not grow with the corpus
_SPLIT = re.compile(r"[^ \t\r\n]+")


class Segmenter(abc.ABC):
    """Cuts a line into tokens and puts tokens together again.

    Attributes:
      fingerprint: SHA-256 that changes when `segment` may give other tokens; a key for caches.
    """

    fingerprint: str

    @abc.abstractmethod
    def segment(self, line: str) -> list[str]:
        """Returns the tokens of a line; none for a blank one."""

    @abc.abstractmethod
    def join(self, tokens: Sequence[str]) -> str:
        """Returns the line that the tokens spell."""


@final
class WordSegmenter(Segmenter):
    """Tokens are what white space separates, as in an already tokenised corpus."""

    def __init__(self) -> None:
        self.fingerprint = _fingerprint("word", b"")

    def segment(self, line: str) -> list[str]:
        """Returns the words of a line."""
        return _SPLIT.findall(line)

    def join(self, tokens: Sequence[str]) -> str:
        """Returns the words with one space between them."""
        return " ".join(tokens)


@final
class BpeSegmenter(Segmenter):
    """Byte pair encoding in subword-nmt's form: `low@@ est` spells `lowest`.

    Args:
      codes_path: merge operations learned by `learn_bpe` or subword-nmt; without them the text
        is taken as segmented already. A word of the text that itself ends in `@@` does not
        survive `join`.

    Raises:
      UserError: the codes cannot be read or are no codes; the message names the line.
    """

    def __init__(self, codes_path: PathLike | None = None) -> None:
        self._bpe = None
        codes = _read_codes(codes_path) if codes_path is not None else ""
        if codes:
            from subword_nmt.apply_bpe import BPE

            self._bpe = BPE(io.StringIO(codes, newline="\n"), separator=SEPARATOR)
        self.fingerprint = _fingerprint("bpe", codes.encode("utf-8"))

    @property
    def merges(self) -> Mapping[tuple[str, str], int]:
        """The rank of each pair of symbols that is merged, lower ones first; none without codes."""
        return self._bpe.bpe_codes if self._bpe is not None else {}

    @property
    def end_apart(self) -> bool:
        """Whether `</w>` begins as a symbol of its own, as in codes of version 0.1."""
        return self._bpe is not None and self._bpe.version == (0, 1)

    def segment(self, line: str) -> list[str]:
        """Returns the units of a line, the last of each word without the separator."""
        words = _SPLIT.findall(line)
        if self._bpe is None:
            return words
        if len(self._bpe.cache) > _REMEMBERED_WORDS:
            self._bpe.cache.clear()
        return self._bpe.segment_tokens(words)

    def join(self, tokens: Sequence[str]) -> str:
        """Returns the words the units spell; a separator left open at the end is dropped."""
        return _JOINT.sub("", " ".join(tokens))


@final
class SentencePieceSegmenter(Segmenter):
    """A SentencePiece model; it works on text that is not tokenised.

    Raises:
      UserError: the model cannot be read or is no SentencePiece model.
    """

    def __init__(self, model_path: PathLike) -> None:
        model = _read_model(model_path)
        import tensorflow as tf
        import tensorflow_text

        self._tokenizer = tensorflow_text.SentencepieceTokenizer(model=model, out_type=tf.string)
        self._string = tf.string
        self._constant = tf.constant
        self.fingerprint = _fingerprint("spm", model)

    @property
    def tokenizer(self) -> Any:
        """tensorflow_text's tokenizer, strings to strings."""
        return self._tokenizer

    def segment(self, line: str) -> list[str]:
        """Returns the pieces of a line; characters the model does not know are pieces too."""
        pieces = self._tokenizer.tokenize(line).numpy()
        return [piece.decode("utf-8") for piece in pieces]

    def join(self, tokens: Sequence[str]) -> str:
        """Returns the text of the pieces; `<unk>` becomes the model's mark for it, ` \u2047 `."""
        pieces = self._constant(list(tokens), dtype=self._string)
        return self._tokenizer.detokenize(pieces).numpy().decode("utf-8")


def make_segmenter(subword_option: str, model_path: PathLike | None = None) -> Segmenter:
    """Returns the segmenter of a configuration: `""` words, `"bpe"`, or `"spm"`.

    Raises:
      UsageError: an unknown option, a model given to words, or none to SentencePiece.
      UserError: the codes or the model cannot be used.
    """
    if subword_option not in SUBWORD_OPTIONS:
        raise UsageError(
            f"subword_option={subword_option!r}: expected one of "
            f"{', '.join(repr(option) for option in SUBWORD_OPTIONS)}"
        )
    if subword_option == "bpe":
        return BpeSegmenter(model_path)
    if subword_option == "spm":
        if model_path is None:
            raise UsageError("subword_option='spm' needs subword_model, the model file")
        return SentencePieceSegmenter(model_path)
    if model_path is not None:
        raise UsageError(f"subword_model={str(model_path)!r} needs subword_option='bpe' or 'spm'")
    return WordSegmenter()


def learn_bpe(input_paths: Iterable[PathLike], output_path: PathLike, num_merges: int) -> None:
    """Learns merge operations jointly over tokenised files (arXiv 1508.07909, section 3.2).

    Stops early, with fewer merges, when no pair of symbols occurs twice.

    Raises:
      UserError: a file cannot be read or written, or there is nothing to merge.
    """
    if num_merges < 1:
        raise UsageError(f"num_merges={num_merges}: at least 1 merge must be learned")
    from subword_nmt.learn_bpe import learn_bpe as learn

    paths = list(input_paths)
    text = (" ".join(_SPLIT.findall(line)) for line in _all_lines(paths))
    codes = io.StringIO(newline="\n")
    try:
        learn(text, codes, num_merges)
    except ValueError as error:
        # subword-nmt asks for the maximum of nothing when no pair of symbols is left.
        if "empty" not in str(error):
            raise
    merges = codes.getvalue().split("\n")[:-1]
    if len(merges) < 2:  # the version line alone
        raise UserError(f"{_names(paths)}: no two symbols occur together twice; nothing to merge")
    write_lines(output_path, merges)


def train_sentencepiece(
    input_paths: Iterable[PathLike], model_prefix: PathLike, vocab_size: int
) -> str:
    """Trains a unigram SentencePiece model on all lines; returns its path, `model_prefix`.model.

    The same text gives the same file: one thread, because sums over several depend on how the
    lines were dealt out, and no sampling of lines.

    Raises:
      UserError: a file cannot be read or written, or the text does not allow this vocab_size.
    """
    import sentencepiece

    paths = list(input_paths)
    failures: list[UserError] = []
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=_remember_failure(_all_lines(paths), failures),
            model_writer=model,
            vocab_size=vocab_size,
            num_threads=1,
            minloglevel=2,
        )
    except RuntimeError as error:
        if failures:  # the library reports an error of the lines as one of its own
            raise failures[0] from None
        raise UserError(
            f"SentencePiece cannot train vocab_size={vocab_size} on {_names(paths)}: "
            f"{_last_words(error) or 'no text'}"
        ) from None
    path = f"{os.fspath(model_prefix)}.model"
    with replacing(path) as stream:
        stream.write(model.getvalue())
    return path


def sentencepiece_vocabulary(model_path: PathLike) -> Vocabulary:
    """Returns the pieces of a model as a vocabulary, the three specials first.

    Raises:
      UserError: the model cannot be read or is no SentencePiece model.
    """
    processor = _processor(_read_bytes(model_path), model_path)
    pieces = [
        processor.id_to_piece(i)
        for i in range(processor.get_piece_size())
        if not processor.is_control(i) and not processor.is_unknown(i)
    ]
    return Vocabulary.of(piece for piece in pieces if not WHITE_SPACE.search(piece))


def _fingerprint(kind: str, content: bytes) -> str:
    return hashlib.sha256(kind.encode("ascii") + b"\0" + content).hexdigest()


def _all_lines(paths: Sequence[PathLike]) -> Iterator[str]:
    for path in paths:
        yield from iter_lines(path)


def _remember_failure(lines: Iterator[str], failures: list[UserError]) -> Iterator[str]:
    try:
        yield from lines
    except UserError as error:
        failures.append(error)
        raise


def _names(paths: Sequence[PathLike]) -> str:
    return ", ".join(str(path) for path in paths)


def _read_codes(path: PathLike) -> str:
    """Checks the lines here, because subword-nmt ends the process at one that is wrong."""
    lines = list(iter_lines(path))
    merges = 0
    for number, line in enumerate(lines, start=1):
        if number == 1 and line.startswith("#version:"):
            if not _CODES_VERSION.fullmatch(line):
                raise UserError(f"{path}: {line[:40]!r}; this reads versions 0.1 and 0.2")
            continue
        if len(line.strip(" ").split(" ")) != 2 or WHITE_SPACE.search(line.replace(" ", "")):
            raise UserError(
                f"{path}, line {number}: expected two symbols with a space between, as "
                f"subword-nmt writes its codes, got {line[:40]!r}"
            )
        merges += 1
    if not merges:
        raise UserError(f"{path} holds no merge operations; expected codes of subword-nmt")
    return "\n".join(lines) + "\n"


def _read_bytes(path: PathLike) -> bytes:
    with open_binary(path) as stream:
        return stream.read()


def _read_model(path: PathLike) -> bytes:
    model = _read_bytes(path)
    _processor(model, path)  # tensorflow_text would say less, and print more
    return model


def _processor(model: bytes, path: PathLike):  # noqa: ANN202 (sentencepiece has no types)
    import sentencepiece

    processor = sentencepiece.SentencePieceProcessor()
    try:
        processor.LoadFromSerializedProto(model)
    except RuntimeError as error:
        raise UserError(f"{path} is no SentencePiece model: {_last_words(error)}") from None
    return processor


def _last_words(error: Exception) -> str:
    """Returns what SentencePiece says after the place in its source and the failed condition."""
    return str(error).rpartition("]")[2].strip() or str(error).partition(":")[2].strip()
