"""Segmentation of lines into words, byte pairs or sentence pieces, and back.

Byte pair encoding: Sennrich, Haddow & Birch 2016, arXiv 1508.07909, with the authors'
subword-nmt. SentencePiece: Kudo & Richardson 2018, arXiv 1808.06226, through tensorflow_text.

No token contains a space, tab, CR or LF, so that every token fits on a line of a vocabulary file;
other characters that Unicode calls white space (U+00A0, U+2028 ...) stay inside tokens.
"""

from __future__ import annotations

import abc
import hashlib
import io
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

from tfmann.data.text_files import iter_lines
from tfmann.data.vocab import WHITE_SPACE, Vocabulary
from tfmann.errors import UsageError, UserError
from tfmann.utils.files import PathLike, read_bytes
from tfmann.utils.tensorflow_import import import_tensorflow

SUBWORD_OPTIONS = ("", "bpe", "spm")

SEPARATOR = "@@"  # after a unit that does not end its word, as in subword-nmt
_JOINT = re.compile(r"@@ |@@ ?$")
_CODES_VERSION = re.compile(r"#version: 0\.[12]")
_CACHED_WORDS = 500_000  # limit of the segmenter's cache, which would grow with the corpus
_WORD = re.compile(r"[^ \t\r\n]+")


class Segmenter(abc.ABC):
    """Segments lines into tokens, and joins tokens into lines.

    Attributes:
      fingerprint: SHA-256 of all that `segment` depends on; a key for caches.
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
    """Segments at white space, for a corpus that is tokenised already."""

    def __init__(self) -> None:
        self.fingerprint = _fingerprint("word", b"")

    def segment(self, line: str) -> list[str]:
        """Returns the words of a line."""
        return _WORD.findall(line)

    def join(self, tokens: Sequence[str]) -> str:
        """Returns the words with one space between them."""
        return " ".join(tokens)


@final
class BpeSegmenter(Segmenter):
    """Byte pair encoding in subword-nmt's form: `low@@ est` spells `lowest`.

    Args:
      codes_path: merge operations learned by `learn_bpe` or subword-nmt; without them the text
        is segmented already. `join` does not restore a word of the text that ends in `@@`.

    Raises:
      UserError: the codes cannot be read or are malformed; the message names the line.
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
        """Rank of each pair of symbols to be merged, the lowest first; empty without codes."""
        return self._bpe.bpe_codes if self._bpe is not None else {}

    @property
    def end_apart(self) -> bool:
        """True if `</w>` is a symbol of its own at first, as in codes of version 0.1."""
        return self._bpe is not None and self._bpe.version == (0, 1)

    def segment(self, line: str) -> list[str]:
        """Returns the units of a line, the last of each word without the separator."""
        words = _WORD.findall(line)
        if self._bpe is None:
            return words
        if len(self._bpe.cache) > _CACHED_WORDS:
            self._bpe.cache = {}  # a new one: another thread may be reading the old one
        return self._bpe.segment_tokens(words)

    def join(self, tokens: Sequence[str]) -> str:
        """Returns the words that the units spell; a separator at the very end is dropped."""
        return _JOINT.sub("", " ".join(tokens))


@final
class SentencePieceSegmenter(Segmenter):
    """A SentencePiece model, for text that is not tokenised.

    Raises:
      UserError: the file cannot be read or is not a SentencePiece model, or tensorflow_text cannot
        be imported.
    """

    def __init__(self, model_path: PathLike) -> None:
        model = _read_model(model_path)
        import_tensorflow()
        import tensorflow as tf

        tensorflow_text = _import_tensorflow_text(tf.__version__)
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
        """Returns the text of the pieces; `<unk>` becomes the model's mark for it, ` \u2047 `.

        A line break becomes a space: models with bytes as pieces can write one.
        """
        pieces = self._constant(list(tokens), dtype=self._string)
        text: str = self._tokenizer.detokenize(pieces).numpy().decode("utf-8")
        return text.replace("\n", " ").replace("\r", " ")


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


def sentencepiece_vocabulary(model_path: PathLike) -> Vocabulary:
    """Returns the pieces of a model as a vocabulary, the three specials first.

    Raises:
      UserError: the file cannot be read or is not a SentencePiece model.
    """
    processor = _processor(read_bytes(model_path), model_path)
    pieces = [
        processor.id_to_piece(i)
        for i in range(processor.get_piece_size())
        if not processor.is_control(i) and not processor.is_unknown(i)
    ]
    return Vocabulary.from_tokens(piece for piece in pieces if not WHITE_SPACE.search(piece))


def _fingerprint(kind: str, content: bytes) -> str:
    return hashlib.sha256(kind.encode("ascii") + b"\0" + content).hexdigest()


def _read_codes(path: PathLike) -> str:
    """Reads and checks codes; subword-nmt itself would end the process at a malformed line."""
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


def _import_tensorflow_text(tensorflow_version: str) -> Any:
    """Imports tensorflow_text, which up to 2.15 needs tensorflow_hub, although nothing here does.

    Raises:
      UserError: either is missing, or has a part missing.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # tensorflow_hub's notice about its own imports
            import tensorflow_text
    except ImportError as error:
        missing = (error.name or "tensorflow_text").partition(".")[0].replace("_", "-")
        if missing == "tensorflow-text":  # any other version would replace TensorFlow
            missing = f"'tensorflow-text=={tensorflow_version.rpartition('.')[0]}.*'"
        raise UserError(
            f"subword_option='spm' needs tensorflow-text, which cannot be imported ({error}): "
            f"pip install {missing}"
        ) from error
    return tensorflow_text


def _read_model(path: PathLike) -> bytes:
    model = read_bytes(path)
    _processor(model, path)  # its errors are clearer than tensorflow_text's
    return model


def sentencepiece_segment(model_path: PathLike) -> Callable[[str], list[str]]:
    """Returns `SentencePieceSegmenter.segment` of a model, without TensorFlow.

    Raises:
      UserError: the model cannot be read or is no SentencePiece model.
    """
    processor = _processor(read_bytes(model_path), model_path)
    return lambda line: processor.encode(line, out_type=str)


def _processor(model: bytes, path: PathLike):  # noqa: ANN202 (sentencepiece has no types)
    import sentencepiece

    processor = sentencepiece.SentencePieceProcessor()
    try:
        processor.LoadFromSerializedProto(model)
    except RuntimeError as error:
        reason = sentencepiece_failure(error) or "it cannot be read as one"
        raise UserError(f"{path} is no SentencePiece model: {reason}") from None
    return processor


def sentencepiece_failure(error: Exception) -> str:
    """Returns SentencePiece's message without its source line, the failed condition and a flag."""
    message = str(error).rpartition("]")[2].strip()
    return message.partition(" or decrease character_coverage")[0]
