"""The diagnostics of a cell, step by step, for one pair of sentences (Collier & Beel 2019, 5.1).

Letters: S source tokens, T target tokens, both with `</s>`, R read heads, H write heads.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from tfmann.cells.diagnostics import SHAPES

if TYPE_CHECKING:
    from tfmann.decoding.translation import Forced


class Trace(Mapping[str, np.ndarray]):
    """Arrays by name, time first; names and further axes are those of `cells.diagnostics.SHAPES`.

    A cell that reads the source itself (`encoder_type` memory) takes S + T steps. In the first S,
    the source phase, step i reads `source_tokens[i]`. In the T steps of the target phase, which
    begin at `boundary` = S, step `boundary + t` produces `tokens[t]`; its input is the token
    before, `<s>` at first. Over an encoder there are the T steps of the target alone, and
    `boundary` is 0. So `step_tokens[i]` is always the token of step i.

    Attributes:
      source_tokens: S tokens, as the model saw them.
      tokens: T target tokens.
      previous_tokens: those of the source sentence before, with `</s>`, which `previous_alignments`
        of the cell `previous` are over; empty if there is none, or if the model does not read it.
      boundary: the first step of the target phase, S or 0.
      slots: the contents of the cache at the beginning of the sentence, in the order of
        `cache_match`; None for a model without a cache.
      word_memory: the share and the votes of a memory that proposes words to the search, at every
        word of the target; None for a search without one.
    """

    def __init__(self, forced: Forced):
        """Takes the diagnostics of a forced decoding."""
        self.source_tokens, self.tokens = forced.source_tokens, forced.tokens
        self.previous_tokens = forced.previous_tokens
        self.boundary = forced.source_steps
        self.slots, self.word_memory = forced.slots, forced.word_memory
        self._arrays = forced.diagnostics

    def __getitem__(self, name: str) -> np.ndarray:
        """Returns the array of that name, `[steps, ...]`."""
        if name not in self._arrays:
            near = difflib.get_close_matches(name, self._arrays, n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise KeyError(f"{name!r}: {hint}there are {', '.join(self._arrays)}")
        return self._arrays[name]

    def __repr__(self) -> str:
        return f"<Trace of {self.source_tokens} and {self.tokens}: {', '.join(self._arrays)}>"

    def __iter__(self) -> Iterator[str]:
        """Iterates over the names of the arrays."""
        return iter(self._arrays)

    def __len__(self) -> int:
        """Returns the number of arrays."""
        return len(self._arrays)

    @property
    def step_tokens(self) -> list[str]:
        """The token of each step: the one read in the source phase, then the one produced."""
        return [*self.source_tokens[: self.boundary], *self.tokens]

    @property
    def rounds(self) -> int:
        """The rounds of each step, for a cell that rewrites source keys (Meng et al. 2018); else 0.

        The locations of such a cell's addresses are source words.
        """
        return self["key_drift"].shape[1] if "key_drift" in self else 0

    @property
    def addresses_source(self) -> bool:
        """Whether the locations of the heads are source words, not the slots of a memory.

        They are if the cell rewrites source keys, or if its attention is the mean of its heads.
        """
        if self.rounds or "write_weights" in self:
            return self.rounds > 0
        if not {"alignments", "read_weights"} <= set(self):
            return False
        heads, attention = self["read_weights"].mean(axis=1), self["alignments"]
        return heads.shape == attention.shape and np.allclose(heads, attention, atol=1e-4)

    @property
    def heads(self) -> dict[str, dict[str, np.ndarray]]:
        """The quantities of each head: `read_head_0`, ..., `write_head_0`, ..., each `[steps, n]`.

        A head's address is called `weights`; the other names are those of the trace, for example
        `trace.heads["write_head_0"]["shift_kernel"]` `[steps, J]`. Quantities that belong to no
        head, or are a matrix for each head, are in the trace only. A cell without heads has none.
        """
        readers, writers = (
            self[name].shape[1] if name in self else 0 for name in ("read_weights", "write_weights")
        )
        heads = {}
        for kind, count, before in (("read", readers, 0), ("write", writers, readers)):
            for index in range(count):
                # the head's row in a quantity, by the meaning of the quantity's rows
                rows = {"R" if kind == "read" else "H": index, "R+H": before + index}
                quantities = {
                    name: self[name][:, rows[shape[0]]]
                    for name, shape in SHAPES.items()
                    if name in self and len(shape) == 2 and shape[0] in rows
                }
                weights = quantities.pop(f"{kind}_weights")
                heads[f"{kind}_head_{index}"] = {"weights": weights, **quantities}
        return heads
