"""The refusal of settings that a run would ignore: those of other cells, searches, optimizers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from tfmann.config.cells import (
    CELLS,
    KeyValueOptions,
    RNNSearchOptions,
    TransformerOptions,
    cell_spec,
)
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
    "replace_unk": ("lexicon_file",),
}  # fmt: skip
_WHOLES = {part: whole for whole, parts in _PARTS.items() for part in parts}

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
    "forget_bias": ("unit_type", ("lstm",)),
    "coverage_size": ("coverage_model", ("neural",)),
    "max_fertility": ("coverage_model", ("fertility",)),
    "length_penalty_weights": ("infer_mode", ("beam_search",)),
    "compile_memory": ("batch_type", ("sentences",)),  # other batches have many sizes
}  # fmt: skip

# The cell mad has the settings of both addressings, and reads those of one of them.
_OF_NTM, _OF_DNC = fields_of(NTMOptions).keys(), fields_of(DNCOptions).keys()
_CONDITIONS_OF_MAD: Mapping[str, tuple[str, tuple[str, ...]]] = {
    **{name: ("external_addressing", ("ntm",)) for name in _OF_NTM - _OF_DNC},
    **{name: ("external_addressing", ("dnc",)) for name in _OF_DNC - _OF_NTM},
}

# Settings of a vocabulary that is counted in the training text.
_OF_BUILT_VOCABULARIES = ("vocab_size", "vocab_min_frequency")


def _begins_with_final_states(h: HParams) -> bool:
    own_start = (RNNSearchOptions, KeyValueOptions, TransformerOptions)
    return h.final_states > 0 and not issubclass(cell_spec(h.cell).options, own_start)


def _has_recurrent_layers(h: HParams) -> bool:
    is_transformer = issubclass(cell_spec(h.cell).options, TransformerOptions)
    return not (is_transformer and h.encoder_type == "transformer")


# Settings that only some models read, such as those of their layers: which ones do, in words too.
_READERS: Mapping[str, tuple[Callable[[HParams], bool], str]] = {
    "transformer_heads": (lambda h: h.is_transformer, "a Transformer"),
    "feed_forward_size": (lambda h: h.is_transformer, "a Transformer"),
    "num_encoder_layers": (lambda h: h.encoder_type != "memory", "an encoder"),
    "num_decoder_layers": (
        lambda h: not issubclass(cell_spec(h.cell).options, RNNSearchOptions),
        "a decoder that can have several layers",
    ),
    **{
        name: (_has_recurrent_layers, "a model with recurrent layers")
        for name in ("unit_type", "forget_bias", "recurrent_init_op")
    },
    "bridge": (
        _begins_with_final_states, "a decoder that begins with the final states of an encoder"
    ),
    "bucket_pool": (
        lambda h: not cell_spec(h.cell).has_cache, "a model whose sentences may come in any order"
    ),
    "compile_memory": (
        lambda h: issubclass(cell_spec(h.cell).options, (NTMOptions, DNCOptions)),
        "a model with the memory of the cells ntm, mad and dnc",
    ),
}  # fmt: skip


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
                f"--{name} has no effect: the cell {cell!r} does not read it, only "
                f"{', '.join(readers[name])}"
            )


def refuse_idle(names: Iterable[str], hparams: HParams) -> None:
    """Raises UsageError for the first of the settings `names` that would have no effect.

    Files may have settings for later; a user who gives one expects it to do something.

    Args:
      names: settings that were given on a command line.
      hparams: all settings, with these.
    """
    reasons = (
        _replaced, _without_whole, _without_condition, _without_reader, _without_search,
        _with_another_ranking, _with_one_neighbor,
    )  # fmt: skip
    for name in names:
        for reason in reasons:
            words = reason(name, hparams)
            if words:
                raise UsageError(f"--{name} has no effect {words}")


def _replaced(name: str, hparams: HParams) -> str:
    """Returns what makes a vocabulary in place of the training text, "" if nothing does."""
    if name not in _OF_BUILT_VOCABULARIES:
        return ""
    if hparams.vocab_prefix:
        return f"with vocab_prefix={hparams.vocab_prefix!r}: leave out one of the two"
    if hparams.subword_option == "spm":
        return "with subword_option='spm': the vocabulary is the pieces of subword_model"
    return ""


def _without_whole(name: str, hparams: HParams) -> str:
    """Returns which setting is missing that `name` is a part of, "" if none is."""
    whole = _WHOLES.get(name)
    if not whole or getattr(hparams, whole) or getattr(hparams, name) == "":
        return ""
    return f"without {whole}: give --{whole}, or leave it out"


def _without_condition(name: str, hparams: HParams) -> str:
    """Returns which setting has a value with which `name` is not read, "" if none has."""
    conditions = {**_CONDITIONS, **(_CONDITIONS_OF_MAD if hparams.cell == "mad" else {})}
    other, readers = conditions.get(name, ("", ()))
    if not readers or getattr(hparams, other) in readers:
        return ""
    return (
        f"with {other}={getattr(hparams, other)!r}: give --{other}={' or '.join(readers)}, or "
        "leave it out"
    )


def _without_reader(name: str, hparams: HParams) -> str:
    """Returns what reads `name` if a model of this cell and encoder does not, "" if it does."""
    is_read, reader = _READERS.get(name, (lambda h: True, ""))
    if is_read(hparams):
        return ""
    return (
        f"with cell={hparams.cell!r} and encoder_type={hparams.encoder_type!r}: only {reader} "
        "reads it"
    )


def _without_search(name: str, hparams: HParams) -> str:
    """Returns which other search reads `name`, "" if one that is made does."""
    if SEARCHES.get(name, hparams.infer_mode) in (hparams.infer_mode, hparams.dev_infer_mode):
        return ""
    return (
        f"with infer_mode={hparams.infer_mode!r}: give --infer_mode={SEARCHES[name]}, or leave it "
        "out"
    )


def _with_another_ranking(name: str, hparams: HParams) -> str:
    """Returns what ranks translations so that no length penalty is chosen, "" if nothing does."""
    if name != "length_penalty_weights" or not hparams.coverage_penalty_weight:
        return ""
    return (
        f"with coverage_penalty_weight={hparams.coverage_penalty_weight}: no length penalty is "
        "chosen then; leave out one of the two"
    )


def _with_one_neighbor(name: str, hparams: HParams) -> str:
    """Returns why no distance counts in a translation memory, "" if one does."""
    weight = hparams.translation_memory_lambda
    if (
        name != "translation_memory_tau"
        or weight is None
        or hparams.translation_memory_neighbors > 1
    ):
        return ""
    return (
        f"with translation_memory_lambda={weight} and one neighbour, whose word has all of p_kNN: "
        "give several --translation_memory_neighbors, or leave it out"
    )
