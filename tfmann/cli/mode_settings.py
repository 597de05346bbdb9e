"""Which settings a mode of `python -m tfmann.nmt` reads; a flag that it would ignore is refused."""

from __future__ import annotations

from collections.abc import Iterable

from tfmann import config
from tfmann.config import FIELDS
from tfmann.errors import UsageError

# The kinds of settings that a mode takes; a mode that is not listed takes those of its search.
KINDS = {
    "train": ("architecture", "data", "training", "inference"),
    "lexicon": ("data",),
    "shortlist": ("data",),
}
# Other settings that a mode reads.
_DIRECTION = ("src", "tgt")  # of any mode: a model does not change it
_EVALUATION_SETS = (*_DIRECTION, "dev_prefix", "test_prefix")
OWN = {
    "lexicon": ("lexicon_file",),
    "shortlist": ("shortlist", "shortlist_first", "shortlist_best"),
    "eval": _EVALUATION_SETS,
    "tune": _EVALUATION_SETS,
}
_BY_NONE = {  # kinds that a mode reads nothing of, but for what is its own
    "lexicon": ("training", "inference"),
    "shortlist": ("training", "inference"),
}


def check(mode: str, names: Iterable[str]) -> None:
    """Raises UsageError for the first setting that was given and that `mode` does not read.

    Args:
      mode: as in `--mode`.
      names: the settings that were given as flags.
    """
    if mode == "train":
        return
    names = list(names)
    if mode not in KINDS:
        config.refuse_settings_of_training(names, f"--mode={mode}", "--")
    for name in names:
        kind = FIELDS[name].kind
        if kind in _BY_NONE.get(mode, ("data",)) and name not in OWN.get(mode, _DIRECTION):
            other = f"{name}_infer"
            reader = "translation" if kind == "inference" else "training"
            hint = f"did you mean --{other}?" if other in FIELDS else f"{reader} does"
            raise UsageError(f"--mode={mode} does not use --{name}: {hint}")
