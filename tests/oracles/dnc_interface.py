"""The interface of the DNC with repairs: its options, its length, its parts.

What the options do is at the head of dnc_repairs.py. The parts of the interface vector lie
in the order of dnc.py, without those that an option removes; then follow read masks R*W,
write masks H*W (sigmoid), forward sharpnesses R and backward sharpnesses R (1 + softplus).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .addressing import softmax, softplus
from .recurrent import sigmoid


class Options(NamedTuple):
    """What differs from the DNC of Graves et al. 2016; nothing by default."""

    masking: bool = False
    mask_floor: float = 0.0  # f in [0, 1]; only with masking
    deallocation: bool = False
    sharp_links: bool = False
    content_only: bool = False
    hops: int = 1  # n


PLAIN = Options()


class Interface(NamedTuple):
    """The numbers that the controller emits, after their activations; None if left out."""

    read_keys: np.ndarray  # [R, W]
    read_strengths: np.ndarray  # [R], >= 1
    write_keys: np.ndarray  # [H, W]
    write_strengths: np.ndarray  # [H], >= 1
    erase: np.ndarray  # e [H, W], in [0, 1]
    add: np.ndarray  # the write vectors v [H, W]
    free_gates: np.ndarray  # f [R], in [0, 1]
    allocation_gates: np.ndarray  # g^a [H], in [0, 1]
    write_gates: np.ndarray  # g^w [H], in [0, 1]
    read_modes: np.ndarray | None = None  # pi [R, 1 + 2H], distributions
    read_masks: np.ndarray | None = None  # mu [R, W], in [mask_floor, 1]
    write_masks: np.ndarray | None = None  # mu [H, W], in [mask_floor, 1]
    forward_sharpness: np.ndarray | None = None  # s^f [R], >= 1
    backward_sharpness: np.ndarray | None = None  # s^b [R], >= 1


def check(options: Options) -> None:
    """Raises ValueError if the options contradict each other or are out of range."""
    if options.content_only and options.sharp_links:
        raise ValueError("content_only: there are no links for sharp_links")
    if options.hops < 1:
        raise ValueError(f"hops {options.hops}: expected 1 or more")
    if not 0.0 <= options.mask_floor <= 1.0:
        raise ValueError(f"mask_floor {options.mask_floor}: expected a number from 0 to 1")


def part_shapes(
    width: int, num_read: int, num_write: int, options: Options = PLAIN
) -> dict[str, tuple[int, ...]]:
    """The parts of the interface vector in their order, with their shapes."""
    check(options)
    shapes: dict[str, tuple[int, ...]] = {
        "read_keys": (num_read, width),
        "read_strengths": (num_read,),
        "write_keys": (num_write, width),
        "write_strengths": (num_write,),
        "erase": (num_write, width),
        "add": (num_write, width),
        "free_gates": (num_read,),
        "allocation_gates": (num_write,),
        "write_gates": (num_write,),
    }
    if not options.content_only:
        shapes["read_modes"] = (num_read, 1 + 2 * num_write)
    if options.masking:
        shapes["read_masks"] = (num_read, width)
        shapes["write_masks"] = (num_write, width)
    if options.sharp_links:
        shapes["forward_sharpness"] = (num_read,)
        shapes["backward_sharpness"] = (num_read,)
    return shapes


def interface_size(width: int, num_read: int, num_write: int, options: Options = PLAIN) -> int:
    """P, the length of the interface vector."""
    shapes = part_shapes(width, num_read, num_write, options)
    return sum(int(np.prod(shape)) for shape in shapes.values())


def slot_width(numbers: int, num_read: int, num_write: int, options: Options = PLAIN) -> int:
    """W, from the length P of the interface vector."""
    scalars = interface_size(0, num_read, num_write, options)
    vectors = interface_size(1, num_read, num_write, options) - scalars
    width, rest = divmod(numbers - scalars, vectors)
    if rest or width < 1:
        raise ValueError(f"{numbers} interface numbers fit no width with these heads")
    return width


def split(raw, num_read: int, num_write: int, options: Options = PLAIN) -> Interface:
    """Cuts the interface vector [P] into its parts and activates them."""

    def oneplus(x):
        return 1.0 + softplus(x)

    def mask(x):
        return sigmoid(x) * (1.0 - options.mask_floor) + options.mask_floor

    activations = {
        "read_strengths": oneplus,
        "write_strengths": oneplus,
        "erase": sigmoid,
        "free_gates": sigmoid,
        "allocation_gates": sigmoid,
        "write_gates": sigmoid,
        "read_modes": lambda rows: np.array([softmax(modes) for modes in rows]),
        "read_masks": mask,
        "write_masks": mask,
        "forward_sharpness": oneplus,
        "backward_sharpness": oneplus,
    }
    width = slot_width(len(raw), num_read, num_write, options)
    parts, start = {}, 0
    for name, shape in part_shapes(width, num_read, num_write, options).items():
        end = start + int(np.prod(shape))
        part = np.asarray(raw[start:end], dtype=np.float64).reshape(shape)
        parts[name] = activations[name](part) if name in activations else part
        start = end
    return Interface(**parts)
