"""Settings that an export allows, and packages that a program needs to load it."""

from __future__ import annotations

from tfmann.config import Architecture, HParams
from tfmann.errors import UsageError


def require_fixed(hparams: HParams) -> None:
    """Raises UsageError if translations would be sampled, or text tokenized in Python."""
    if hparams.tokenizer:
        raise UsageError(
            f"tokenizer={hparams.tokenizer!r} runs in Python, and an export is a TensorFlow "
            "program: train on SentencePiece (subword_option='spm'), or on tokenized text"
        )
    if hparams.neural_cache_size:
        raise UsageError(
            f"neural_cache_size={hparams.neural_cache_size} is not part of an export: give "
            "--neural_cache_size=0"
        )
    for name in ("translation_memory", "lexical_memory", "shortlist"):
        if getattr(hparams, name):
            raise UsageError(
                f"{name}={getattr(hparams, name)!r} is not part of an export: leave it out, or "
                f"give --{name}= (nothing) where the run has one"
            )
    if hparams.infer_mode == "sample":
        raise UsageError(
            "an export is deterministic, and infer_mode='sample' draws at random: give "
            "--infer_mode=beam_search or greedy"
        )


def needs(hparams: Architecture) -> list[str]:
    """Returns the packages that a program imports before it loads an export."""
    text = ["tensorflow_text"] if hparams.subword_option == "spm" else []
    return ["tensorflow", *text]
