"""Settings that several cells share, and those of the cells whose memory has heads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tfmann.config.fields import Settings, field

PARTS = 64  # heads, rounds and taps make the program longer, not its tensors wider


@dataclass(frozen=True)
class CellSettings(Settings):
    """Settings that only some cells read; the shapes of a checkpoint depend on them."""

    kind: ClassVar[str] = "architecture"


@dataclass(frozen=True)
class DotProductOptions(CellSettings):
    """Scores of attention that are dot products."""

    attention_score: str = field(
        "dot",
        "Scores that are dot products: dot, as printed; scaled_dot, divided by the square "
        "root of the width, with a learned gain that starts at 1; cosine, with a learned gain that "
        "starts at 5.",
        choices=("dot", "scaled_dot", "cosine"),
    )
    # Adam moves one number by its rate at most in an update, so that a gain stays near its start.
    attention_gain_start: float = field(
        0.0,
        "Where the learned gain of attention_score starts; 0: where its description says.",
        minimum=0.0,
    )


@dataclass(frozen=True)
class ShiftOptions(CellSettings):
    """Addresses that move by a convolution, as in the Neural Turing Machine."""

    shift_range: int = field(
        1,
        "Largest shift of an address per step, in slots; kernel of J = 2 * shift_range + 1 taps.",
        minimum=0,
        maximum=PARTS,
    )


@dataclass(frozen=True)
class SlotOptions(CellSettings):
    """Sizes of a memory that is not the source's annotations."""

    num_memory_locations: int = field(
        128, "ntm, dnc, mad, memdec: slots N of the memory; the paper of memdec has 8.", minimum=1
    )
    memory_unit_size: int = field(512, "ntm, dnc, mad, memdec: width W of a slot.", minimum=1)


@dataclass(frozen=True)
class ExternalMemoryOptions(SlotOptions):
    """A memory with heads, and its sizes."""

    read_heads: int = field(1, "ntm, dnc, mad: read heads R.", minimum=1, maximum=PARTS)
    write_heads: int = field(1, "ntm, dnc, mad: write heads H.", minimum=1, maximum=PARTS)


@dataclass(frozen=True)
class HopOptions(CellSettings):
    """Several reads of a memory in a step, which Collier & Beel 2019 propose as future work."""

    memory_hops: int = field(
        1,
        "ntm, dnc: number of reads per step; each uses a state updated with the previous read. "
        "There is always one write.",
        minimum=1,
        maximum=PARTS,
    )


@dataclass(frozen=True)
class DNCOptions(ExternalMemoryOptions):
    """A memory that is addressed as that of a DNC.

    Its repairs are those of Csordás & Schmidhuber 2019 (masks, de-allocation, sharp links) and of
    Franke et al. 2018 (contents only, normalisation).
    """

    dnc_masking: bool = field(
        False,
        "DNC memory: every head emits a mask of the W components that its content lookup compares.",
    )
    dnc_mask_floor: float = field(
        0.0,
        "DNC memory: the least that a mask can be; 0.1 leaves every number some weight.",
        minimum=0.0,
        below=1.0,
    )
    dnc_deallocation: bool = field(
        False, "DNC memory: slots freed by the free gates are also erased, to the same degree."
    )
    dnc_sharp_links: bool = field(
        False,
        "DNC memory: forward and backward weights are sharpened, each by a number of its read "
        "head.",
    )
    dnc_content_only: bool = field(
        False,
        "DNC memory: heads read by content alone, without links and read modes.",
    )
    dnc_layer_norm: bool = field(
        False, "DNC memory: layer normalisation of the numbers that the controller emits to it."
    )


@dataclass(frozen=True)
class DNCCellOptions(DNCOptions, HopOptions):
    """The DNC as a cell, with the dropout of Franke et al. 2018."""

    dnc_bypass_dropout: float = field(
        0.0,
        "dnc cell: dropout of the controller's state where it bypasses the memory, on its way to "
        "the output, so that the output depends more on what was read.",
        minimum=0.0,
        below=1.0,
    )


@dataclass(frozen=True)
class NTMOptions(ExternalMemoryOptions, ShiftOptions):
    """A memory that is addressed as that of a Neural Turing Machine."""

    address_start: float = field(
        0.0,
        "Initial bias of an NTM's addresses towards the first slot (added to its logit); 0: the "
        "initial addresses are spread over all slots.",
    )
    head_start: str = field(
        "zero",
        "ntm, mad: initial biases of an NTM's heads. zero: all 0; tape: each write goes one slot "
        "further than the last, and reads go by content.",
        choices=("zero", "tape"),
    )


@dataclass(frozen=True)
class NTMCellOptions(NTMOptions, HopOptions):
    """The NTM as a cell."""


@dataclass(frozen=True)
class MADOptions(NTMOptions, DNCOptions, DotProductOptions):
    """The memory-augmented decoder of Collier and Beel 2019."""

    external_addressing: str = field(
        "ntm",
        "mad cell: how its memory is addressed; the paper uses ntm and mentions dnc.",
        choices=("ntm", "dnc"),
    )
