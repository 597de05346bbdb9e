"""Traces of random numbers, as cells give them, and what a figure shows of them."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from tfmann.decoding.translation import Slots
from tfmann.evaluation.trace import Trace

SOURCE, TARGET = ["wo", "steht", "er", "</s>"], ["where", "is", "it", "?", "</s>"]
TOKENS = ["we", "felt", "it", "</s>"]
SLOTS = Slots(["felt", "", "new", "the", ""], np.array([7, -1, 0, 3, -1]))  # I = 5, three filled
ROUNDS = 3


def head_trace(kind="ntm", heads=(1, 1), slots=6, reads_source=True, source=SOURCE, target=TARGET):
    """Returns a trace of random numbers in the shapes of an NTM's or a DNC's heads."""
    rng = np.random.default_rng(0)
    steps, (r, h) = len(target) + reads_source * len(source), heads
    shapes = {"read_weights": (r, slots), "content_weights": (r + h, slots)}
    if h:
        shapes.update(write_weights=(h, slots), erase_norm=(h, 1), add_norm=(h, 1))
    if kind == "ntm":
        shapes.update(interpolation_gate=(r + h, 1), shift_kernel=(r + h, 3), sharpening=(r + h, 1))
    else:
        shapes.update(
            usage=(slots,), allocation_weights=(h, slots), allocation_gate=(h, 1),
            write_gate=(h, 1), free_gate=(r, 1), read_modes=(r, 1 + 2 * h),
            precedence=(h, slots), link=(h, slots, slots),
        )  # fmt: skip
    arrays = {name: rng.uniform(size=(steps, *shape)) for name, shape in shapes.items()}
    if not h:  # the heads are the attention
        arrays["alignments"] = arrays["read_weights"].mean(axis=1)
    forced = SimpleNamespace(
        source_tokens=source, tokens=target, diagnostics=arrays,
        source_steps=len(source) if reads_source else 0, slots=None, word_memory=None,
        previous_tokens=(),
    )  # fmt: skip
    return Trace(forced)


def cache_trace(slots=SLOTS, tokens=TOKENS, seed=0):
    """Returns a trace of a cell with a cache; empty slots are never matched."""
    rng = np.random.default_rng(seed)
    match = rng.uniform(size=(len(tokens), len(slots.words))) * (np.array(slots.ages) >= 0)
    arrays = {"cache_match": match, "cache_gate": rng.uniform(size=(len(tokens), 1))}
    return Trace(
        SimpleNamespace(
            source_tokens=["</s>"],
            tokens=tokens,
            diagnostics=arrays,
            source_steps=0,
            slots=slots,
            word_memory=None,
            previous_tokens=(),
        )
    )


def trace_of(previous=(), **shapes):
    """Returns a trace of random numbers `[steps, *shape]`, the shapes by their names."""
    rng = np.random.default_rng(0)
    arrays = {name: rng.uniform(size=(len(TARGET), *shape)) for name, shape in shapes.items()}
    return Trace(
        SimpleNamespace(
            source_tokens=SOURCE, tokens=TARGET, diagnostics=arrays, source_steps=0, slots=None,
            word_memory=None, previous_tokens=previous,
        )
    )  # fmt: skip


def rounds_trace(rounds=ROUNDS, source=SOURCE, target=TARGET):
    """Returns a trace of a cell that rewrites the source's keys."""
    trace = head_trace("ntm", (rounds, rounds), len(source), False, source, target)
    trace._arrays["key_drift"] = np.ones([len(target), rounds, 1])
    return trace


def drawn_weights(axes):
    """Returns the matrix of a heat map."""
    return np.asarray(axes.images[0].get_array())


def tick_labels(axes, axis):
    """Returns the texts along the axis `x` or `y`."""
    return [label.get_text() for label in getattr(axes, f"{axis}axis").get_ticklabels()]
