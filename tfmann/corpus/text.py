"""Both sides' text as ids and back: segmentation and vocabulary together."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Callable, NamedTuple

from tfmann import hparams as hparams_module
from tfmann.corpus import fingerprints
from tfmann.corpus.files import (
    file_digest,
    iter_documents,
    iter_lines,
    open_binary,
    replacing,
)
from tfmann.corpus.subword import Segmenter, make_segmenter, sentencepiece_vocabulary
from tfmann.corpus.vocab import EOS_ID, UNK_ID, NoTokenError, Vocabulary
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


def vocabulary_paths(hparams: HParams) -> tuple[str, str]:
    """The files of `vocab_prefix`: `PREFIX.src` for both sides with `share_vocab`."""
    source, target = prefix_paths(hparams, str(hparams.vocab_prefix))
    return source, source if hparams.share_vocab else target


def documents_path(prefix: str) -> str | None:
    """`PREFIX.docs`, one document id a line, if that file is there."""
    path = f"{prefix}.docs"
    return path if os.path.exists(path) else None


def document_ids(prefix: str) -> list[int] | None:
    """The ids of that file.

    Raises:
      UserError: a line of it is no non-negative integer.
    """
    path = documents_path(prefix)
    return None if path is None else list(iter_documents(path))


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
      UsageError, UserError: something needed is not given or cannot be used, or it is not what
        the run began with.
    """
    if begun(out_dir):
        languages = load_languages(hparams, out_dir)
        fingerprints.require_inputs(hparams, out_dir)
        return languages
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
    fingerprints.write(hparams, out_dir, _own(languages, hparams, out_dir))


def renew_note(
    languages: Languages, hparams: HParams, out_dir: str, log: Callable[[str], None]
) -> None:
    """Notes what a begun run reads now, if it has lost the note of what it began with; says so."""
    if fingerprints.lost(out_dir):
        log(
            f"{out_dir} has no inputs.json: whether text and vocabularies are as they were when "
            "the run began is not known. They are noted as they are now."
        )
        fingerprints.write(hparams, out_dir, _own(languages, hparams, out_dir))


def _own(languages: Languages, hparams: HParams, out_dir: str) -> dict[str, str]:
    """What a run's folder keeps of both languages: a fingerprint by file name."""
    own = {
        os.path.basename(_vocabulary_path(out_dir, suffix)): side.vocabulary.fingerprint
        for side, suffix in zip(languages, (hparams.src, hparams.tgt))
    }
    if hparams.subword_model:
        model = _model_path(out_dir)
        own[os.path.basename(model)] = file_digest(model)
    return own


def _read(path: str) -> bytes:
    with open_binary(path) as stream:
        return stream.read()


def load_languages(hparams: HParams, out_dir: str) -> Languages:
    """Loads what `save_languages` left in a run's folder.

    Raises:
      UsageError: a setting asks for another vocabulary or other subwords than the run has.
      UserError: a file cannot be read, or is not as it was saved.
    """
    require_languages(hparams)
    path = os.path.join(out_dir, HPARAMS)
    saved = hparams_module.make({}, path) if os.path.exists(path) else hparams
    model = _model_path(out_dir) if saved.subword_model else None
    segmenter = make_segmenter(saved.subword_option, model)
    sides = [
        Side(Vocabulary.load(_vocabulary_path(out_dir, suffix)), segmenter)
        for suffix in (hparams.src, hparams.tgt)
    ]
    languages = Languages(*sides)
    fingerprints.require_own(out_dir, _own(languages, saved, out_dir))
    _refuse_others(hparams, saved, languages, out_dir)
    return languages


def _refuse_others(
    hparams: HParams, saved: HParams, languages: Languages, out_dir: str
) -> None:
    """Compares what settings that are not the saved ones stand for with what the run has."""

    def changed(*keys: str) -> str:
        return ", ".join(
            f"{key}={getattr(hparams, key)!r} (saved: {getattr(saved, key)!r})"
            for key in keys
            if getattr(hparams, key) != getattr(saved, key)
        )

    for what, named, same in (
        ("subwords", changed("subword_model"), _same_subwords),
        ("vocabulary", changed("vocab_prefix", "vocab_size", "vocab_min_frequency"), _same_words),
    ):
        if not named:
            continue
        try:
            reason = "" if same(hparams, languages, out_dir) else "gives others"
        except UserError as error:
            reason = f"cannot be compared with it: {error}"
        if reason:
            raise UsageError(
                f"{out_dir} holds a model with its own {what}, and {named} {reason}. "
                "Use another out_dir, or leave these settings as they were."
            )


def _same_subwords(hparams: HParams, languages: Languages, out_dir: str) -> bool:
    del languages
    given, kept = hparams.subword_model, _model_path(out_dir)
    return bool(given) and os.path.exists(kept) and _read(given) == _read(kept)


def _same_words(hparams: HParams, languages: Languages, out_dir: str) -> bool:
    if hparams.subword_model:  # the same as the run's by now; its own place may be gone
        hparams = hparams.replace(subword_model=_model_path(out_dir))
    return all(
        _find_vocabulary(hparams, side.segmenter, index, lambda message: None) == side.vocabulary
        for index, side in enumerate(languages)
    )


def _vocabulary_path(out_dir: str, suffix: str) -> str:
    return os.path.join(out_dir, f"vocab.{suffix}")


def _model_path(out_dir: str) -> str:
    return os.path.join(out_dir, "subword.model")


def _find_vocabulary(
    hparams: HParams, segmenter: Segmenter, side: int, log: Callable[[str], None]
) -> Vocabulary:
    if hparams.vocab_prefix:
        return Vocabulary.load(vocabulary_paths(hparams)[side])
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

    try:
        built = Vocabulary.build(lines(), hparams.vocab_size, hparams.vocab_min_frequency)
    except NoTokenError as error:
        raise UserError(f"{' and '.join(paths)}: {error}") from None
    log(f"vocabulary of {' and '.join(Path(p).name for p in paths)}: {len(built)} entries")
    return built
