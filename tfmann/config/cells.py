"""The registry of decoder cells: where each is, which settings it has, what it needs.

Nothing here imports TensorFlow. A new cell is one line of `CELLS`; its own settings are a dataclass
that `CellOptions` inherits. docs/add_a_cell.md adds one.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tfmann.config.fields import field
from tfmann.config.memory_options import (
    PARTS,
    CellSettings,
    DNCCellOptions,
    DotProductOptions,
    MADOptions,
    NTMCellOptions,
    ShiftOptions,
    SlotOptions,
)
from tfmann.errors import UsageError

_WINDOW = 10_000  # words


@dataclass(frozen=True)
class LuongOptions(DotProductOptions):
    """Attention of Luong et al. 2015, as in tensorflow/nmt."""

    attention: str = field(
        "scaled_luong",
        "luong cell: general attention, without or with a learned gain; or additive, as it "
        "is or with weight normalisation.",
        choices=("luong", "scaled_luong", "bahdanau", "normed_bahdanau"),
    )
    attention_tanh: bool = field(
        False,
        "tanh on the attention vector, as Luong et al. have it and tensorflow/nmt has not.",
    )


@dataclass(frozen=True)
class RNNSearchOptions(CellSettings):
    """Widths of the decoders that follow Bahdanau et al. 2015."""

    attention_size: int = field(
        0, "RNNSearch family: width A of the additive attention; 0 = num_units.", minimum=0
    )
    readout_size: int = field(
        0, "RNNSearch family: width of the readout; 0 = embedding_size.", minimum=0
    )


@dataclass(frozen=True)
class CacheOptions(RNNSearchOptions):
    """The continuous cache of Tu et al. 2018."""

    cache_size: int = field(
        25, "cache: slots I, each for a target word of the document so far.", minimum=0
    )
    cache_fusion: str = field(
        "deep",
        "cache: what is found is mixed into the state before the readout (deep), or the "
        "words of the slots into the distribution (shallow).",
        choices=("deep", "shallow"),
    )
    cache_matching: str = field(
        "dot",
        "cache: how a slot is matched: dot, as printed; scaled_dot and cosine, with a "
        "learned gain (as of attention_score); projected, with a learned matrix between query and "
        "key; or, to see what a gain over no cache is worth, the mean of all slots (uniform), or "
        "m_t = 0 (nothing, with deep fusion only).",
        choices=("dot", "scaled_dot", "cosine", "projected", "uniform", "nothing"),
    )
    cache_gate_loss_weight: float = field(
        0.0,
        "cache, shallow fusion: weight of a loss that opens the gate where P_cache of the "
        "reference word is higher than the model's own probability, and closes it where it is "
        "lower, in proportion to the difference (not in the paper); 0: none.",
        minimum=0.0,
    )
    cache_overwrite: bool = field(
        True, "cache: a word that has a slot is averaged into it; false: always a new slot."
    )


@dataclass(frozen=True)
class CoverageOptions(RNNSearchOptions):
    """The coverage of Tu et al. 2016."""

    coverage_model: str = field(
        "fertility",
        "coverage cell: the sum of the attention so far (linguistic), divided by the number of "
        "target words that a source word is expected to become (fertility), or a GRU (neural).",
        choices=("linguistic", "fertility", "neural"),
    )
    coverage_size: int = field(
        10,
        "coverage cell, neural: numbers d for each source word; the others have 1.",
        minimum=1,
    )
    max_fertility: float = field(
        2.0,
        "coverage cell, fertility: the greatest number N of target words for a source word.",
        minimum=0.1,
    )
    coverage_init_weight: float = field(
        0.001,
        "coverage cell: standard deviation of the coverage's start weights; small, so that the "
        "model starts as RNNSearch.",
        minimum=0.0,
    )


@dataclass(frozen=True)
class PastFutureOptions(RNNSearchOptions):
    """The Past and Future layers of Zheng et al. 2018."""

    future_layer: str = field(
        "gru_i",
        "past_future cell: how the future layer subtracts a context: a GRU (gru); a GRU of what "
        "is left after subtracting (gru_o); or within the GRU (gru_i).",
        choices=("gru", "gru_o", "gru_i"),
    )
    auxiliary_loss_weight: float = field(
        1.0,
        "past_future cell: weight of the losses on the change of each layer; 0: none.",
        minimum=0.0,
    )


@dataclass(frozen=True)
class KVMemAttOptions(RNNSearchOptions):
    """The key-value memory of Meng et al. 2018."""

    num_rounds: int = field(
        1,
        "kvmematt cell: rounds R of reading and rewriting in a step; the paper has 1 and 2.",
        minimum=1,
        maximum=PARTS,
    )


@dataclass(frozen=True)
class KeyValueOptions(DotProductOptions):
    """The key-value attention of Mino et al. 2017."""

    key_value_system: str = field(
        "key_value",
        "key_value cell: which of the three systems of Mino et al. 2017.",
        choices=("attn", "key_value", "modifying_iw"),
    )


@dataclass(frozen=True)
class NTMAttentionOptions(ShiftOptions, DotProductOptions):
    """Attention whose heads are addressed as those of a Neural Turing Machine."""

    num_attention_heads: int = field(
        1, "ntm_attention cell: read heads R on the source.", minimum=1, maximum=PARTS
    )
    # With these two an address begins as nearly its content's (g = 0.88, middle tap 0.91). From 0
    # half of it is the last address, blurred over three positions: at cpu scale on Vi-En it drifts
    # round to the sentence's end and stays there (BLEU 8.2 instead of 15.8 after 2,500 updates).
    # On the short, regular sentences of the synthetic corpus 0 learns faster (97 instead of 85).
    gate_start: float = field(
        2.0, "ntm_attention cell: start value of the interpolation gate's bias."
    )
    stay_start: float = field(
        3.0, "ntm_attention cell: start value of the bias of the shift kernel's middle tap."
    )
    # With 0 and 1 an address can come to rest on </s> within twenty updates of Adam at 1e-3, and
    # one seed of two needed more than a thousand to leave it (docs/recipes.md).
    sharpening_start: float = field(
        0.0, "ntm_attention cell: start value of the sharpening's bias, gamma = 1 + softplus of it."
    )
    head_scale: float = field(
        1.0,
        "ntm_attention cell: factor on the projections of h_t to strength, gate, shift and "
        "sharpening. Under Adam a sum over U units changes U times as fast as a bias; 1/sqrt(U) "
        "compensates for part of this.",
        minimum=0,
    )


@dataclass(frozen=True)
class MemDecOptions(SlotOptions, RNNSearchOptions):
    """The memory-enhanced decoder of Wang et al. 2016."""


@dataclass(frozen=True)
class TransformerOptions(CellSettings):
    """The decoder of Vaswani et al. 2017."""

    self_attention_window: int = field(
        0,
        "transformer and kvmematt_transformer cells: last target words W that self-attention sees; "
        "0 = tgt_max_len and 1 more, for </s>.",
        minimum=0,
        maximum=_WINDOW,
    )


# The settings of all cells: each class that declares some is among the bases.
@dataclass(frozen=True)
class CellOptions(
    MADOptions,
    NTMCellOptions,
    DNCCellOptions,
    NTMAttentionOptions,
    LuongOptions,
    KVMemAttOptions,
    KeyValueOptions,
    CacheOptions,
    CoverageOptions,
    MemDecOptions,
    PastFutureOptions,
    TransformerOptions,
):
    """The settings of all cells, which are settings of every run."""


@dataclass(frozen=True)
class CellSpec:
    """A cell's entry in the registry.

    Attributes:
      module: its module in `tfmann.cells`.
      class_name: its class there, a `tfmann.cells.base.DecoderCell`.
      options: the settings that it reads in addition to those of all models.
      has_alignments: the cell attends to the source. One that does not can do without an encoder.
      history: what becomes of the document's earlier source sentences: "summary", "annotations",
        or "" where the cell reads none.
      history_size: P, the sentences of a history at most.
      has_cache: the cell reads what the translation of the document so far has left.
    """

    module: str
    class_name: str
    options: type[CellSettings]
    has_alignments: bool = True
    history: str = ""
    history_size: int = 0
    has_cache: bool = False

    @property
    def reads_documents(self) -> bool:
        """True if a sentence's translation depends on the sentences before it."""
        return self.has_cache or self.history_size > 0


def _by_name(*entries: tuple[str, CellSpec]) -> Mapping[str, CellSpec]:
    """Returns the entries by name.

    Raises:
      TypeError: two have the same name, or the settings of one are not among `CellOptions`.
    """
    cells: dict[str, CellSpec] = {}
    for name, spec in entries:
        if name in cells:
            raise TypeError(f"CELLS in config/cells.py has two entries {name!r}")
        if not issubclass(CellOptions, spec.options):
            options = spec.options.__name__
            raise TypeError(f"config/cells.py: {options} has to be among the bases of CellOptions")
        cells[name] = spec
    return cells


CELLS: Mapping[str, CellSpec] = _by_name(
    ("cache", CellSpec("cache", "CacheCell", CacheOptions, has_cache=True)),
    ("coverage", CellSpec("coverage", "CoverageCell", CoverageOptions)),
    ("dnc", CellSpec("dnc", "DNCCell", DNCCellOptions, has_alignments=False)),
    ("key_value", CellSpec("key_value", "KeyValueCell", KeyValueOptions)),
    ("kvmematt", CellSpec("kvmematt", "KVMemAttCell", KVMemAttOptions)),
    ("kvmematt_transformer", CellSpec("transformer", "TransformerCell", TransformerOptions)),
    ("luong", CellSpec("luong", "LuongCell", LuongOptions)),
    ("mad", CellSpec("mad", "MADCell", MADOptions)),
    ("mematt", CellSpec("kvmematt", "KVMemAttCell", RNNSearchOptions)),
    ("memdec", CellSpec("memdec", "MemDecCell", MemDecOptions)),
    ("ntm", CellSpec("ntm", "NTMCell", NTMCellOptions, has_alignments=False)),
    ("ntm_attention", CellSpec("ntm_attention", "NTMAttentionCell", NTMAttentionOptions)),
    ("past_future", CellSpec("past_future", "PastFutureCell", PastFutureOptions)),
    (
        "previous",
        CellSpec(
            "previous", "PreviousCell", RNNSearchOptions, history="annotations", history_size=1
        ),
    ),
    ("rnnsearch", CellSpec("rnnsearch", "RNNSearchCell", RNNSearchOptions)),
    (
        "summary",
        CellSpec("summary", "SummaryCell", RNNSearchOptions, history="summary", history_size=3),
    ),
    ("transformer", CellSpec("transformer", "TransformerCell", TransformerOptions)),
)


def cell_spec(name: str) -> CellSpec:
    """Returns the entry of the cell `name`.

    Raises:
      UsageError: no cell has this name; the message has the nearest one.
    """
    if name not in CELLS:
        near = difflib.get_close_matches(name, CELLS, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise UsageError(f"no cell is called {name!r}{hint}")
    return CELLS[name]


def require_alignments(cells: Sequence[str], purpose: str) -> None:
    """Raises UsageError where `purpose` needs alignments and none of a model's cells has them."""
    if not any(cell_spec(cell).has_alignments for cell in cells):
        raise UsageError(
            f"{purpose} needs alignments with the source, and the cell {cells[0]!r} has no "
            "alignments: it knows the source by its memory alone"
        )
