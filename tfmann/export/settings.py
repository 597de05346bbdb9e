"""What settings an export can have, and what a program needs that loads it."""

from __future__ import annotations

from tfmann.errors import UsageError
from tfmann.hparams import HParams


def require_fixed(hparams: HParams) -> None:
    """Raises UsageError where answers would be drawn."""
    if hparams.infer_mode == "sample":
        raise UsageError(
            "an export answers a line always alike, and infer_mode='sample' draws for a whole "
            "batch: give --infer_mode=beam_search or greedy"
        )


def needs(hparams: HParams) -> list[str]:
    """The packages that a program imports before it loads an export."""
    text = ["tensorflow_text"] if hparams.subword_option == "spm" else []
    return ["tensorflow", *text]
