"""How dev BLEU is measured in a run: everything that it depends on, except the weights.

Figures that were measured differently are not compared.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, Callable

from tfmann import config
from tfmann.cli.dev_evaluation import search_settings
from tfmann.config import HParams
from tfmann.config.search import SEARCHES
from tfmann.data import corpus_paths, lexicon, memory_files
from tfmann.training.train_state import TrainState
from tfmann.utils.files import file_digest

Measure = dict[str, Any]

WEIGHT = "length_penalty_weight"
_DEV_TEXT = "dev_text"  # a digest: the same text may be elsewhere
_MEMORIES = "memories"  # likewise, of the files that settings of translating name
_OTHERS = {_DEV_TEXT: "another dev set", _MEMORIES: "another lexicon or memory"}
# Settings of translating that leave the translations as they are.
_WITHOUT_EFFECT = ("infer_batch_size", "decoder_backend", "length_penalty_weights")
# Settings on which the best translation of one search alone depends, by that search. The weight is
# recorded with all: the search after training has it.
_SEARCHES = {**SEARCHES, "num_translations_per_input": "sample"}


def measure(hparams: HParams, out_dir: str) -> Measure:
    """Returns all that the dev BLEU of an evaluation depends on, but for the weights.

    Args:
      hparams: the settings of a run; its dev set is read, and the lexicon and memories it names.
      out_dir: its folder, where its lexicon is if the settings name none.
    """
    mode = hparams.replace(**search_settings(hparams)).infer_mode
    names = [
        name
        for name, field in config.FIELDS.items()
        if field.kind == "inference"
        and not field.is_path
        and name not in _WITHOUT_EFFECT
        and (_is_read(name, mode) or name == WEIGHT)
    ]
    settings = {name: getattr(hparams, name) for name in (*names, "dev_sentences")}
    memories = _digest(_memories(hparams, out_dir))
    digests = {_DEV_TEXT: _digest(_dev_text(hparams)), _MEMORIES: memories}
    return {**settings, "infer_mode": mode, **digests}


def _is_read(name: str, mode: str) -> bool:
    return _SEARCHES.get(name, mode) == mode


def _dev_text(hparams: HParams) -> list[str]:
    text = corpus_paths.evaluation_sets(hparams)["dev"]
    documents = [text.documents] if text.documents and hparams.reads_documents else []
    return [text.source, *text.references, *documents]


def _memories(hparams: HParams, out_dir: str) -> list[str]:
    of_unknown = lexicon.path(hparams, out_dir) if hparams.replace_unk else None
    return [*filter(None, (of_unknown, hparams.shortlist)), *memory_files.paths(hparams)]


def _digest(paths: Iterable[str]) -> str:
    return hashlib.sha256("".join(map(file_digest, paths)).encode()).hexdigest()


def kept_weight(
    before: Mapping[str, Any], now: Mapping[str, Any], saved: Mapping[str, Any]
) -> float | None:
    """Returns the length penalty that evaluations keep, if that of the settings was chosen since.

    The end of training and `tfmann tune` save the weight that they choose with the run. It is for
    translating: an evaluation with it would not be comparable with those before.

    Args:
      before: the measure of the evaluations so far; empty in an older checkpoint.
      now: the measure with the settings as they are.
      saved: the settings in the folder of the run before this call; a weight that differs from
        theirs comes from the user.

    Returns:
      None if evaluations have the weight of the settings.
    """
    weight = before.get(WEIGHT)
    if not isinstance(weight, float) or now.get(WEIGHT, weight) == weight:
        return None
    return weight if now[WEIGHT] == saved.get(WEIGHT) else None


def compare(state: TrainState, now: Measure, log: Callable[[str], None]) -> bool:
    """Forgets the best dev BLEU of a run if later evaluations are measured differently.

    Its weights stay until the next evaluation replaces them.

    Args:
      state: of the checkpoint that the run continues from; changed in place. Older ones have no
        measure, and count as measured in the same way.
      now: the measure of the evaluations to come.
      log: takes a line that says what has changed.

    Returns:
      True if they are measured differently.
    """
    differing = differences(state.measure, now)
    if differing:
        if state.best_bleu >= 0:
            log(
                f"dev bleu is measured differently from here on ({', '.join(differing)}): it is "
                f"not comparable with the best so far ({state.best_bleu:.2f} at step "
                f"{state.best_step}), and the next evaluation replaces best_bleu"
            )
        state.best_bleu, state.stale_evaluations = -1.0, 0
    state.measure = now
    return bool(differing)


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Returns what differs between two measures, for a log, as `beam_width 10 -> 4`."""
    return [
        _OTHERS.get(name, f"{name} {before.get(name)} -> {value}")
        for name, value in now.items()
        if name in before and before[name] != value and _is_read(name, now["infer_mode"])
    ]
