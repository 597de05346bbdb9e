"""The vocabularies and the subword model of a run: chosen once, then saved in the run's folder."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Callable

from tfmann import config
from tfmann.config import DataSettings, HParams
from tfmann.data import fingerprints
from tfmann.data.corpus_paths import parallel_paths, vocabulary_paths
from tfmann.data.moses import make_segmenters
from tfmann.data.subword import Segmenter, sentencepiece_vocabulary
from tfmann.data.text_encoder import LanguagePair, TextEncoder
from tfmann.data.text_files import iter_lines
from tfmann.data.vocab import NoTokenError, Vocabulary
from tfmann.errors import UsageError, UserError
from tfmann.utils.files import atomic_write, file_digest, read_bytes
from tfmann.utils.run_folder import (
    HPARAMS,
    SUBWORD_MODEL,
    has_weights,
    run_of,
    vocabulary_name,
)


def load_or_build(
    hparams: HParams, out_dir: str, log: Callable[[str], None] = print
) -> LanguagePair:
    """Loads the vocabularies of a run, or chooses those of a new run without writing them.

    A new run takes the files of `vocab_prefix` if it is given, else the pieces of its SentencePiece
    model, else the words of the training text, counted.

    Raises:
      UsageError, UserError: a setting or file is missing or cannot be used, or a file has changed
        since the run began.
    """
    if has_weights(out_dir):
        _refuse_other_suffixes(hparams, out_dir)
        languages = load(hparams, out_dir)
        fingerprints.require_same_inputs(hparams, out_dir)
        return languages
    segmenters = _segmenters(hparams, hparams.subword_model)
    source, target = (_new_vocabulary(hparams, segmenters, i, log) for i in (0, 1))
    _report_words_left_out(hparams, target, log)
    return LanguagePair(TextEncoder(source, segmenters[0]), TextEncoder(target, segmenters[1]))


def save(languages: LanguagePair, hparams: HParams, out_dir: str) -> None:
    """Writes vocabularies and subword model into a run's folder; its settings are written later.

    Raises:
      UserError: a folder that is not a run's has other files of these names, or the disk is full.
    """
    contents = {}
    for encoder, suffix in zip(languages, hparams.require_suffixes()):
        lines = "".join(f"{token}\n" for token in encoder.vocabulary.tokens)
        contents[_vocabulary_path(out_dir, suffix)] = lines.encode()
    if hparams.subword_model:
        contents[_model_path(out_dir)] = read_bytes(hparams.subword_model)
    if not os.path.exists(os.path.join(out_dir, HPARAMS)):
        for path, content in contents.items():
            if os.path.exists(path) and read_bytes(path) != content:
                raise UserError(f"{path} belongs to no run: give an out_dir without other files")
    for path, content in contents.items():
        with atomic_write(path) as stream:
            stream.write(content)
    fingerprints.record(hparams, out_dir, _fingerprints(languages, hparams, out_dir))


def load(hparams: HParams, out_dir: str) -> LanguagePair:
    """Loads what `save` wrote into a run's folder.

    The text of a command may have other suffixes than that of the run, whose files have its own.

    Raises:
      UsageError: a setting asks for another vocabulary or other subwords than the run has.
      UserError: a file cannot be read, or has changed since it was saved.
    """
    saved = _saved(hparams, out_dir)
    model = _model_path(out_dir) if saved.subword_model else None
    languages = LanguagePair(
        *(
            TextEncoder(Vocabulary.load(_vocabulary_path(out_dir, suffix)), segmenter)
            for suffix, segmenter in zip(saved.require_suffixes(), _segmenters(saved, model))
        )
    )
    fingerprints.require_same_vocabularies(out_dir, _fingerprints(languages, saved, out_dir))
    _refuse_others(hparams, saved, languages, out_dir)
    return languages


def refuse_other_words(
    languages: LanguagePair, hparams: HParams, path: str, setting: str, advice: str
) -> None:
    """Refuses the weights of a run with other vocabularies.

    Weights know words by their ids alone: where two vocabularies have one size, nothing else would
    show that the words are others. The run of a checkpoint that was moved out of it is not known.

    Args:
      languages: with the vocabularies that the weights are for.
      hparams: the settings of these.
      path: the folder of a checkpoint, or of a run.
      setting: the name of what it was given as.
      advice: what to do, with `{}` for the flags that choose the words of that run.

    Raises:
      UserError: the vocabulary of a side is another one.
    """
    run = run_of(path)
    if run is None:
        return
    try:
        settings = config.read_json(os.path.join(run, HPARAMS))
    except UsageError:  # of another version
        return
    for encoder, key in zip(languages, ("src", "tgt")):
        vocabulary = _vocabulary_path(run, str(settings.get(key)))
        if os.path.exists(vocabulary) and Vocabulary.load(vocabulary) != encoder.vocabulary:
            raise UserError(
                f"{setting}={path} has learned other words, those of {vocabulary}: "
                f"{advice.format(_flags_of_words(hparams, run, settings))}"
            )


def _flags_of_words(hparams: HParams, run: str, settings: Mapping[str, Any]) -> str:
    """Returns the flags that give `hparams` the words of a run, and text the same tokens."""
    flags = [f"--vocab_prefix={run}/vocab"]
    for key in ("subword_option", "tokenizer"):
        value = settings.get(key) or ""
        if value != (getattr(hparams, key) or ""):
            flags.append(f"--{key}={value}")
    model, own = hparams.subword_model, _model_path(run) if settings.get("subword_model") else ""
    if (own and not (model and read_bytes(model) == read_bytes(own))) or (model and not own):
        flags.append(f"--subword_model={own}")
    return " ".join(flags)


def record_lost_fingerprints(
    languages: LanguagePair, hparams: HParams, out_dir: str, log: Callable[[str], None]
) -> None:
    """Records the inputs of a resumed run that has lost its record of them, and logs that."""
    if fingerprints.missing(out_dir):
        log(
            f"{out_dir} has no inputs.json: whether text and vocabularies have changed since the "
            "run began is not known. They are recorded as they are now."
        )
        fingerprints.record(hparams, out_dir, _fingerprints(languages, hparams, out_dir))


def _fingerprints(languages: LanguagePair, hparams: DataSettings, out_dir: str) -> dict[str, str]:
    """Returns a fingerprint by file name of the vocabularies and subword model in `out_dir`."""
    fingerprint_of = {
        os.path.basename(_vocabulary_path(out_dir, suffix)): encoder.vocabulary.fingerprint
        for encoder, suffix in zip(languages, hparams.require_suffixes())
    }
    if hparams.subword_model:
        model = _model_path(out_dir)
        fingerprint_of[os.path.basename(model)] = file_digest(model)
    return fingerprint_of


def _refuse_other_suffixes(hparams: HParams, out_dir: str) -> None:
    """Raises UsageError if a run would continue with suffixes by which it has no vocabularies."""
    changed = _changes(hparams, _saved(hparams, out_dir), "src", "tgt")
    if changed:
        raise UsageError(
            f"{out_dir} names its vocabularies by the suffixes of its text, which cannot change "
            f"while it is trained: {changed}. Give the files the old suffixes, or use "
            "another out_dir."
        )


def _refuse_others(hparams: HParams, saved: HParams, languages: LanguagePair, out_dir: str) -> None:
    """Raises UsageError if changed settings give other subwords or words than the run's own."""
    words = "vocab_prefix", "vocab_size", "vocab_min_frequency"
    for name, keys, unchanged in (
        ("subwords", ("subword_model",), _same_subwords),
        ("vocabulary", words, _same_words),
    ):
        changed = _changes(hparams, saved, *keys)
        if not changed:
            continue
        try:
            reason = "" if unchanged(hparams, languages, out_dir) else "gives others"
        except UserError as error:
            reason = f"cannot be compared with it: {error}"
        if reason:
            raise UsageError(
                f"{out_dir} holds a model with its own {name}, and {changed} {reason}. "
                "Use another out_dir, or keep the saved values."
            )


def _changes(hparams: HParams, saved: HParams, *keys: str) -> str:
    """Returns the settings of these names that are not as saved, for a message."""
    return ", ".join(
        f"{key}={getattr(hparams, key)!r} (saved: {getattr(saved, key)!r})"
        for key in keys
        if getattr(hparams, key) != getattr(saved, key)
    )


def _saved(hparams: HParams, out_dir: str) -> HParams:
    """Returns the settings that a run has saved; `hparams` if it has saved none."""
    path = os.path.join(out_dir, HPARAMS)
    return config.make({}, path) if os.path.exists(path) else hparams


def _same_subwords(hparams: HParams, languages: LanguagePair, out_dir: str) -> bool:
    del languages
    path, saved = hparams.subword_model, _model_path(out_dir)
    return path is not None and os.path.exists(saved) and read_bytes(path) == read_bytes(saved)


def _same_words(hparams: HParams, languages: LanguagePair, out_dir: str) -> bool:
    if hparams.subword_model:  # equal to the run's own by now; the original file may be gone
        hparams = hparams.replace(subword_model=_model_path(out_dir))
    segmenters = [encoder.segmenter for encoder in languages]
    return all(
        _new_vocabulary(hparams, segmenters, side, lambda message: None) == encoder.vocabulary
        for side, encoder in enumerate(languages)
    )


def _segmenters(hparams: HParams, model_path: str | None) -> list[Segmenter]:
    """Returns the segmenters of the source and of the target; an empty path is none."""
    languages = hparams.require_suffixes()
    return make_segmenters(hparams.tokenizer, hparams.subword_option, model_path or None, languages)


def _new_vocabulary(
    hparams: HParams, segmenters: Sequence[Segmenter], side: int, log: Callable[[str], None]
) -> Vocabulary:
    """Returns the vocabulary that the settings ask for; `side` is 0 for source, 1 for target."""
    if hparams.vocab_prefix:
        return Vocabulary.load(vocabulary_paths(hparams)[side])
    if hparams.subword_option == "spm":
        return sentencepiece_vocabulary(str(hparams.subword_model))
    if not hparams.train_prefix:
        raise UsageError("neither vocab_prefix nor train_prefix is given: no vocabulary to use")
    sides = (0, 1) if hparams.share_vocab else (side,)
    corpora = [parallel_paths(hparams, prefix) for prefix in hparams.train_prefixes]
    texts = [(paths[i], segmenters[i]) for paths in corpora for i in sides]
    paths = [path for path, _ in texts]

    def segmented_lines() -> Iterator[list[str]]:
        for path, segmenter in texts:
            for line in iter_lines(path):
                yield segmenter.segment(line)

    try:
        vocabulary = Vocabulary.build(
            segmented_lines(), hparams.vocab_size, hparams.vocab_min_frequency
        )
    except NoTokenError as error:
        raise UserError(f"{' and '.join(paths)}: {error}") from None
    names = " and ".join(Path(path).name for path in paths)
    log(f"vocabulary of {names}: {len(vocabulary)} entries")
    return vocabulary


def _report_words_left_out(
    hparams: HParams, vocabulary: Vocabulary, log: Callable[[str], None]
) -> None:
    """Logs how many words of a target file the vocabulary of both sides lacks, if there are any."""
    path = f"{hparams.vocab_prefix}.{hparams.tgt}"
    if not (hparams.share_vocab and hparams.vocab_prefix and os.path.exists(path)):
        return
    words = Vocabulary.load(path).tokens
    missing = sum(word not in vocabulary for word in words)
    if missing:
        log(
            f"share_vocab takes the words of {vocabulary_paths(hparams)[0]} for both sides: "
            f"{missing:,} of {len(words):,} words of {path} are not among them and become <unk>. "
            "With --vocab_prefix= (empty) those of the training text of both sides are counted."
        )


def _vocabulary_path(out_dir: str, suffix: str) -> str:
    return os.path.join(out_dir, vocabulary_name(suffix))


def _model_path(out_dir: str) -> str:
    return os.path.join(out_dir, SUBWORD_MODEL)
