"""Both sides' text as ids and back: segmentation and vocabulary together."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Callable, NamedTuple

from tfmann.corpus.files import iter_lines, open_binary, replacing
from tfmann.corpus.subword import Segmenter, make_segmenter, sentencepiece_vocabulary
from tfmann.corpus.vocab import EOS_ID, UNK_ID, Vocabulary
from tfmann.errors import UsageError, UserError
from tfmann.folder import HPARAMS, begun
from tfmann.hparams import HParams


class Side(NamedTuple):
    """One language: how its lines become ids."""

    vocabulary: Vocabulary
    segmenter: Segmenter

    def encode(self, line: str) -> list[int]:
        """Ids of a line, without `</s>`; a special symbol written out in the text is `<unk>`."""
        ids = self.vocabulary.encode(self.segmenter.segment(line))
        return [i if i > EOS_ID else UNK_ID for i in ids]

    def decode(self, ids: list[int]) -> str:
        """Text of ids up to the first `</s>`."""
        if EOS_ID in ids:
            ids = ids[: ids.index(EOS_ID)]
        return self.segmenter.join(self.vocabulary.decode(ids))


class Languages(NamedTuple):
    """Source and target side of a model."""

    source: Side
    target: Side


def prefix_paths(hparams: HParams, prefix: str) -> tuple[str, str]:
    """`PREFIX.src` and `PREFIX.tgt`."""
    return f"{prefix}.{hparams.src}", f"{prefix}.{hparams.tgt}"


def documents_path(prefix: str) -> str | None:
    """`PREFIX.docs`, one document id a line, if that file is there."""
    path = f"{prefix}.docs"
    return path if os.path.exists(path) else None


def require_languages(hparams: HParams) -> None:
    """Raises UsageError unless `src` and `tgt` are given."""
    for key in ("src", "tgt"):
        if getattr(hparams, key) is None:
            raise UsageError(f"{key} is not given: it is the suffix of the {key} files, e.g. vi")


def settle_vocabularies(
    hparams: HParams, out_dir: str, log: Callable[[str], None] = print
) -> Languages:
    """Loads the vocabularies of the run in `out_dir`, or finds those of a new one; writes nothing.

    With `vocab_prefix` the files are taken from there; a SentencePiece model is its own
    vocabulary; otherwise the words of the training text are counted.

    Raises:
      UsageError, UserError: something needed is not given or cannot be used.
    """
    if begun(out_dir):
        return load_languages(hparams, out_dir)
    require_languages(hparams)
    segmenter = make_segmenter(hparams.subword_option, hparams.subword_model)
    return Languages(
        *(Side(_find_vocabulary(hparams, segmenter, side, log), segmenter) for side in (0, 1))
    )


def save_languages(languages: Languages, hparams: HParams, out_dir: str) -> None:
    """Writes vocabularies and subword model into a run's folder; its settings come after them.

    Raises:
      UserError: the folder is no run's and holds other files of these names, or the disk is full.
    """
    files = {}
    for side, suffix in zip(languages, (hparams.src, hparams.tgt)):
        lines = "".join(f"{token}\n" for token in side.vocabulary.tokens)
        files[_vocabulary_path(out_dir, suffix)] = lines.encode()
    if hparams.subword_model:
        files[_model_path(out_dir)] = _read(hparams.subword_model)
    ours = os.path.exists(os.path.join(out_dir, HPARAMS))
    for path, content in files.items():
        if os.path.exists(path) and not ours and _read(path) != content:
            raise UserError(f"{path} belongs to no run: give an out_dir without other files")
    for path, content in files.items():
        with replacing(path) as stream:
            stream.write(content)


def _read(path: str) -> bytes:
    with open_binary(path) as stream:
        return stream.read()


def load_languages(hparams: HParams, out_dir: str) -> Languages:
    """Loads what `save_languages` left in a run's folder."""
    require_languages(hparams)
    model = _model_path(out_dir) if hparams.subword_model else None
    segmenter = make_segmenter(hparams.subword_option, model)
    sides = [
        Side(Vocabulary.load(_vocabulary_path(out_dir, suffix)), segmenter)
        for suffix in (hparams.src, hparams.tgt)
    ]
    return Languages(*sides)


def _vocabulary_path(out_dir: str, suffix: str) -> str:
    return os.path.join(out_dir, f"vocab.{suffix}")


def _model_path(out_dir: str) -> str:
    return os.path.join(out_dir, "subword.model")


def _find_vocabulary(
    hparams: HParams, segmenter: Segmenter, side: int, log: Callable[[str], None]
) -> Vocabulary:
    suffixes = (hparams.src, hparams.tgt)
    if hparams.vocab_prefix:
        suffix = suffixes[0] if hparams.share_vocab else suffixes[side]
        return Vocabulary.load(f"{hparams.vocab_prefix}.{suffix}")
    if hparams.subword_option == "spm":
        return sentencepiece_vocabulary(hparams.subword_model)
    if not hparams.train_prefix:
        raise UsageError("neither vocab_prefix nor train_prefix is given: no vocabulary to use")
    both = prefix_paths(hparams, hparams.train_prefix)
    paths = both if hparams.share_vocab else (both[side],)

    def lines() -> Iterator[list[str]]:
        for path in paths:
            for line in iter_lines(path):
                yield segmenter.segment(line)

    built = Vocabulary.build(lines(), hparams.vocab_size, hparams.vocab_min_frequency)
    log(f"vocabulary of {' and '.join(Path(p).name for p in paths)}: {len(built)} entries")
    return built
