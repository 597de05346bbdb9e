"""The refusal of settings that a run would ignore: those of other cells, searches, optimizers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tfmann.config.cells import CELLS
from tfmann.config.fields import fields_of
from tfmann.config.hparams import HParams
from tfmann.config.memory_options import DNCOptions, NTMOptions
from tfmann.config.search import SEARCHES
from tfmann.errors import UsageError

# Settings that are read only where another one, the key, is given.
_PARTS = {
    "warmup_steps": ("warmup_scheme",),
    "dnc_masking": ("dnc_mask_floor",),
    "neural_cache_size": ("neural_cache_theta", "neural_cache_lambda"),
    "translation_memory": (
        "translation_memory_pairs", "translation_memory_neighbors", "translation_memory_tau",
        "translation_memory_lambda",
    ),
    "lexical_memory": ("lexical_memory_lambda",),
    "shortlist": ("shortlist_first", "shortlist_best"),
}  # fmt: skip

# Settings of models and training that are read only with some values of another one.
_SPREADS = ("uniform", "normal")
_CONDITIONS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "adadelta_rho": ("optimizer", ("adadelta",)),
    "adadelta_epsilon": ("optimizer", ("adadelta",)),
    "decay_steps": (
        "decay_scheme", ("luong5", "luong10", "luong234", "inverse_sqrt", "cosine"),
    ),
    "plateau_patience": ("decay_scheme", ("plateau",)),
    "init_weight": ("init_op", _SPREADS),
    "embedding_init_weight": ("embedding_init_op", _SPREADS),
    "annotation_merge": ("encoder_type", ("bi",)),
    "coverage_size": ("coverage_model", ("neural",)),
    "max_fertility": ("coverage_model", ("fertility",)),
}  # fmt: skip

# The cell mad has the settings of both addressings, and reads those of one of them.
_OF_NTM, _OF_DNC = fields_of(NTMOptions).keys(), fields_of(DNCOptions).keys()
_CONDITIONS_OF_MAD: Mapping[str, tuple[str, tuple[str, ...]]] = {
    **{name: ("external_addressing", ("ntm",)) for name in _OF_NTM - _OF_DNC},
    **{name: ("external_addressing", ("dnc",)) for name in _OF_DNC - _OF_NTM},
}

# Settings that are not read where another one is given.
_REPLACED_BY = {"vocab_size": "vocab_prefix", "vocab_min_frequency": "vocab_prefix"}


def cells_by_setting() -> dict[str, list[str]]:
    """Returns the cells that read a setting, for each setting that not all models read."""
    cells: dict[str, list[str]] = {}
    for cell, spec in CELLS.items():
        for name in fields_of(spec.options):
            cells.setdefault(name, []).append(cell)
    return cells


def refuse_unread(names: Iterable[str], cell: str) -> None:
    """Raises UsageError for the first of the settings `names` that only other cells read."""
    readers = cells_by_setting()
    for name in names:
        if cell not in readers.get(name, [cell]):
            raise UsageError(
                f"--{name} is of no use: the cell {cell!r} does not read it, only "
                f"{', '.join(readers[name])}"
            )


def refuse_idle(names: Iterable[str], hparams: HParams) -> None:
    """Raises UsageError for the first of the settings `names` that would have no effect.

    Files may have settings for later; a user who gives one expects it to do something.

    Args:
      names: settings that were given on a command line.
      hparams: all settings, with these.
    """
    wholes = {part: whole for whole, parts in _PARTS.items() for part in parts}
    conditions = {**_CONDITIONS, **(_CONDITIONS_OF_MAD if hparams.cell == "mad" else {})}
    for name in names:
        replacement = _REPLACED_BY.get(name)
        if replacement and getattr(hparams, replacement):
            raise UsageError(
                f"--{name} is of no use with {replacement}={getattr(hparams, replacement)!r}: "
                "leave out one of the two"
            )
        whole = wholes.get(name)
        if whole and not getattr(hparams, whole):
            raise UsageError(
                f"--{name} is of no use without {whole}: give --{whole}, or leave it out"
            )
        other, readers = conditions.get(name, ("", ()))
        if readers and getattr(hparams, other) not in readers:
            raise UsageError(
                f"--{name} is of no use with {other}={getattr(hparams, other)!r}: give --{other}="
                f"{' or '.join(readers)}, or leave it out"
            )
        modes = hparams.infer_mode, hparams.dev_infer_mode
        if name in SEARCHES and SEARCHES[name] not in modes:
            raise UsageError(
                f"--{name} is of no use with infer_mode={hparams.infer_mode!r}: give "
                f"--infer_mode={SEARCHES[name]}, or leave it out"
            )
