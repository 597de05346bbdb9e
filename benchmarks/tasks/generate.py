"""Copy, repeat copy and associative recall (Graves et al. 2014, arXiv:1410.5401, section 4).

A task is a stream of random bits that a machine must reproduce. All rows of a batch have one size,
drawn for each batch (as in Collier & Beel 2018, arXiv:1807.08518). A batch depends only on (seed,
update), so that every cell gets the same batches, and a run continues without a saved position.

Delimiters have their own channels, as in Graves et al. The code of Collier & Beel has a vector of
ones instead, and none between the items of associative recall. They train copy on lengths up to 20;
here the greatest is 10, so that twice that length is already unseen.

Letters: T steps, B rows, C channels of the input, O channels of the output.
"""

from __future__ import annotations

import dataclasses
from typing import Callable, NamedTuple

import numpy as np

Size = tuple[int, ...]

TRAIN, VALIDATION, TEST = range(3)  # purposes of a stream of random numbers
ITEM_LENGTH = 3  # vectors of an item of associative recall


class Batch(NamedTuple):
    """One size of one task, B times."""

    inputs: np.ndarray  # [T, B, C] float32
    targets: np.ndarray  # [T, B, O] float32, zero where the mask is
    mask: np.ndarray  # [T, B] float32, 1 at the steps of the answer


class Sweep(NamedTuple):
    """Sizes in which one number grows, for error against length."""

    label: str
    number: int  # which number of a size grows
    trained: int  # the greatest it has in training
    sizes: tuple[Size, ...]


@dataclasses.dataclass(frozen=True)
class Task:
    """A task with the sizes it is trained, validated and tested on."""

    name: str
    input_width: int
    output_width: int
    ranges: tuple[tuple[int, int], ...]  # of each number of a size: least and greatest in training
    make: Callable[..., Batch]  # (stream, rows, *size)
    sweeps: tuple[Sweep, ...]
    steps: int  # updates of a run

    def training(self, seed: int, update: int, rows: int) -> Batch:
        """Returns the batch of one update."""
        stream = np.random.default_rng([TRAIN, seed, update])
        return self.make(stream, rows, *self._draw(stream))

    def validation(self, batches: int = 20, rows: int = 32) -> list[Batch]:
        """Returns batches of sizes as in training, the same for all cells and seeds.

        A size of one number takes its values in turn; a size of two numbers is drawn.
        """
        sizes = []
        for index in range(batches):
            stream = np.random.default_rng([VALIDATION, index])
            low, high = self.ranges[0]
            turn = (low + index % (high - low + 1),)
            sizes.append(turn if len(self.ranges) == 1 else self._draw(stream))
        streams = [np.random.default_rng([VALIDATION, i, *s]) for i, s in enumerate(sizes)]
        return [self.make(stream, rows, *size) for stream, size in zip(streams, sizes)]

    def test(self, size: Size, rows: int = 192) -> Batch:
        """Returns a batch of one size, the same for all cells and seeds."""
        return self.make(np.random.default_rng([TEST, *size]), rows, *size)

    def trained_on(self, size: Size) -> bool:
        """Returns whether a size occurs in training."""
        return all(low <= n <= high for n, (low, high) in zip(size, self.ranges))

    def _draw(self, stream: np.random.Generator) -> Size:
        return tuple(int(stream.integers(low, high + 1)) for low, high in self.ranges)


def _bits(stream: np.random.Generator, *shape: int) -> np.ndarray:
    return stream.integers(0, 2, shape).astype(np.float32)


def _batch(steps: int, rows: int, channels: int, answer: np.ndarray) -> Batch:
    """Makes blank inputs `[T, B, C]` with the answer `[A, B, O]` in the last A steps."""
    inputs = np.zeros([steps, rows, channels], np.float32)
    targets = np.zeros([steps, rows, answer.shape[-1]], np.float32)
    mask = np.zeros([steps, rows], np.float32)
    targets[-len(answer) :], mask[-len(answer) :] = answer, 1.0
    return Batch(inputs, targets, mask)


def copy(stream: np.random.Generator, rows: int, length: int, bits: int = 8) -> Batch:
    """Makes vectors and a delimiter (channel `bits`); the answer is the same vectors (4.1)."""
    vectors = _bits(stream, length, rows, bits)
    batch = _batch(2 * length + 1, rows, bits + 1, vectors)
    batch.inputs[:length, :, :bits] = vectors
    batch.inputs[length, :, bits] = 1.0
    return batch


def repeat_copy(
    stream: np.random.Generator, rows: int, length: int, repeats: int, bits: int = 8
) -> Batch:
    """Makes vectors and a number of repeats; the answer is the copies and an end marker (4.2).

    A delimiter follows the vectors, with the number on its own channel (`bits + 1`), shifted and
    scaled to mean 0 and variance 1 over 1 to 10. The end marker is channel `bits` of the output.
    """
    vectors = _bits(stream, length, rows, bits)
    answer = np.zeros([length * repeats + 1, rows, bits + 1], np.float32)
    answer[:-1, :, :bits] = np.tile(vectors, (repeats, 1, 1))
    answer[-1, :, bits] = 1.0
    batch = _batch(length + 1 + len(answer), rows, bits + 2, answer)
    batch.inputs[:length, :, :bits] = vectors
    batch.inputs[length, :, bits] = 1.0
    batch.inputs[length, :, bits + 1] = normalised(repeats)
    return batch


def normalised(repeats: int, greatest: int = 10) -> float:
    """Scales a number of repeats, uniform in 1 to `greatest`, to mean 0 and variance 1."""
    return (repeats - (greatest + 1) / 2) / ((greatest**2 - 1) / 12) ** 0.5


def associative_recall(stream: np.random.Generator, rows: int, items: int, bits: int = 6) -> Batch:
    """Makes items of three vectors and a query, one of them; the answer is its successor (4.3).

    A delimiter (channel `bits`) precedes each item. Another delimiter (`bits + 1`) is on both sides
    of the query, which is drawn for each row, and is not the last item.
    """
    vectors = _bits(stream, items, ITEM_LENGTH, rows, bits)
    queried, row = stream.integers(0, items - 1, rows), np.arange(rows)
    answer = vectors[queried + 1, :, row].transpose(1, 0, 2)  # [3, B, bits]
    width = ITEM_LENGTH + 1
    batch = _batch(width * (items + 1) + 1 + ITEM_LENGTH, rows, bits + 2, answer)
    for item in range(items):
        begin = width * item
        batch.inputs[begin, :, bits] = 1.0
        batch.inputs[begin + 1 : begin + width, :, :bits] = vectors[item]
    begin = width * items
    batch.inputs[begin, :, bits + 1] = 1.0
    batch.inputs[begin + 1 : begin + width, :, :bits] = vectors[queried, :, row].transpose(1, 0, 2)
    batch.inputs[begin + width, :, bits + 1] = 1.0
    return batch


def wrong_bits(logits: np.ndarray, batch: Batch) -> float:
    """Counts the wrong bits per sequence, the measure of Collier & Beel.

    An output of at least 0.5 (a logit of at least 0) is a 1; the bits that differ from the target
    are counted over all steps and channels of the answer and divided by the number of sequences. It
    is not divided by length, so guessing costs half the answer's bits: 4 L for a copy of L vectors.
    In repeat copy the end marker's channel is counted too.
    """
    differs = (logits >= 0) != (batch.targets > 0.5)
    return float((differs * batch.mask[..., None]).sum() / batch.mask.shape[1])


def _sizes(*numbers: int, before: Size = (), after: Size = ()) -> tuple[Size, ...]:
    return tuple((*before, number, *after) for number in numbers)


TASKS = {
    task.name: task
    for task in (
        Task(
            name="copy",
            input_width=9,
            output_width=8,
            ranges=((1, 10),),
            make=copy,
            sweeps=(Sweep("length", 0, 10, _sizes(*range(1, 11), 12, 15, 20, 25, 30, 40)),),
            steps=10_000,
        ),
        Task(
            name="repeat_copy",
            input_width=10,
            output_width=9,
            ranges=((1, 10), (1, 10)),
            make=repeat_copy,
            sweeps=(
                Sweep(
                    "length, repeated 10 times",
                    0,
                    10,
                    _sizes(1, 3, 5, 8, 10, 12, 15, 20, after=(10,)),
                ),
                Sweep(
                    "repeats, of length 10",
                    1,
                    10,
                    _sizes(1, 3, 5, 8, 10, 12, 15, 20, before=(10,)),
                ),
            ),
            steps=10_000,
        ),
        Task(
            name="associative_recall",
            input_width=8,
            output_width=6,
            ranges=((2, 6),),
            make=associative_recall,
            sweeps=(Sweep("items", 0, 6, _sizes(2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 20)),),
            steps=20_000,
        ),
    )
}
