"""Diagnostics of a step: their standard names and shapes, and how some of them are selected.

Letters: S source positions, S' positions of the previous source sentence, R read heads, H write
heads, J shift taps, N memory slots of W numbers, I cache slots. Where the memory is the source, N
is S. In kvmematt and mematt every round has one read head and one write head. The batch axis, which
comes first, is not listed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tfmann.errors import UserError

if TYPE_CHECKING:
    import tensorflow as tf

# A cell returns those that it has, under these names and in these shapes; it may return others too.
# Of "R+H" heads the read heads come first. Each value is that of the step itself. A comment that
# begins with the name of a cell is about this cell alone.
SHAPES: Mapping[str, tuple[str, ...]] = {
    "alignments": ("S",),  # attention to the source; the mean of several heads
    "previous_alignments": ("S'",),  # previous: to the sentence before; 0 if there is none
    # coverage: how much a source position has been attended to, after the step: C_t, or the root
    # mean square of its d numbers
    "coverage": ("S",),
    "fertility": ("S",),  # coverage: Phi, the same at every step
    "past_change": ("1",),  # past_future: |a_t - a_{t-1}|
    "future_change": ("1",),  # past_future: |f_t - f_{t-1}|
    "summary_gate": ("1",),  # summary: how much of d enters, mean over its U numbers
    "cache_match": ("I",),  # cache: P(c_i | c_t); all 0 while the cache is empty
    "cache_gate": ("1",),  # cache: lambda_t, mean over its width; 0: nothing is mixed in
    "read_weights": ("R", "N"),  # addresses; they sum to 1, in the DNC to at most 1
    "write_weights": ("H", "N"),
    "content_weights": ("R+H", "N"),  # the address by content alone
    # NTM
    "interpolation_gate": ("R+H", "1"),  # 1: from the content alone, 0: from the last address
    "shift_kernel": ("R+H", "J"),  # by offset: -1, 0, +1
    "sharpening": ("R+H", "1"),  # gamma, at least 1
    # what is written
    "erase_norm": ("H", "1"),  # length of the erase vector (kvmematt: FORGET)
    "add_norm": ("H", "1"),  # length of the vector that is added
    # kvmematt, mematt
    "key_drift": ("H", "1"),  # how far the keys have moved from the annotations, mean over S
    # cache: s_t, from which it is written
    "decoder_state": ("U",),
    # DNC
    "usage": ("N",),  # before this step's write, after what this step set free
    "allocation_weights": ("H", "N"),  # where the next free slot is
    "allocation_gate": ("H", "1"),  # 1: write where it is free, 0: where the content is
    "write_gate": ("H", "1"),  # 0: nothing is written
    "free_gate": ("R", "1"),  # 1: what was read last is free now
    "read_modes": ("R", "1+2H"),  # shares: backward 1..H, content, forward 1..H
    "read_mask": ("R", "W"),  # with dnc_masking; 0: the content lookup ignores this number
    "write_mask": ("H", "W"),
    "backward_sharpness": ("R", "1"),  # with dnc_sharp_links: at least 1
    "forward_sharpness": ("R", "1"),
    "precedence": ("H", "N"),  # how much each slot was the last one written, after the write
    "link": ("H", "N", "N"),  # [i, j]: slot i was written right after slot j; after the write
}

_ADDRESSES = ("alignments", "read_weights", "write_weights")
EVERYTHING = ("*",)  # as `record`: all that a cell returns
ADDRESSES = ("*addresses",)  # as `record`: where a step reads and writes
VECTORS = ("*vectors",)  # as `record`: all except `link`, which has H*N*N numbers


def select(diagnostics: Mapping[str, tf.Tensor], record: tuple[str, ...]) -> dict[str, tf.Tensor]:
    """Selects the diagnostics of a step that are to be recorded.

    Args:
      diagnostics: all diagnostics of a step, `[B, ...]` each.
      record: names, or `EVERYTHING`, `ADDRESSES` or `VECTORS`.

    Raises:
      UserError: the cell returns no diagnostic of that name.
    """
    if record == EVERYTHING:
        return dict(diagnostics)
    if record == ADDRESSES:
        return {name: diagnostics[name] for name in _ADDRESSES if name in diagnostics}
    if record == VECTORS:
        return {name: value for name, value in diagnostics.items() if value.shape.rank <= 3}
    missing = [name for name in record if name not in diagnostics]
    if missing:
        raise UserError(f"this cell shows no {missing[0]}; it has {', '.join(sorted(diagnostics))}")
    return {name: diagnostics[name] for name in record}
