"""Weights for the tests of the oracles: random ones, and ones that run a program."""

from __future__ import annotations

import numpy as np
from oracles import dnc_interface, recurrent

HEADS = [(1, 1), (2, 1), (1, 2), (2, 3), (3, 2)]


def random_unit(rng, inputs, units, gates):
    return {
        "kernel": rng.normal(size=(inputs, gates * units)),
        "recurrent_kernel": rng.normal(size=(units, gates * units)),
        "bias": rng.normal(size=gates * units),
    }


def zero_unit(inputs, units, gates):
    return {
        "kernel": np.zeros((inputs, gates * units)),
        "recurrent_kernel": np.zeros((units, gates * units)),
        "bias": np.zeros(gates * units),
    }


def programmed_controller(steps, reads):
    """A GRU that answers the input e_t by the state e_t, whatever it has read before.

    Row t of a head or interface layer then gives the memory's input at step t.
    """
    kernel = np.zeros((steps + reads, 3 * steps))
    kernel[:steps, 2 * steps :] = 100.0 * np.eye(steps)
    bias = np.zeros(3 * steps)
    bias[:steps] = -100.0  # the update gate is shut: all new
    return {"kernel": kernel, "recurrent_kernel": np.zeros((steps, 3 * steps)), "bias": bias}


def weights_of_program(rows, reads, layer):
    """Weights that say `rows` [L, P] to the memory and put out what it reads."""
    rows = np.asarray(rows, dtype=float)
    steps, numbers = rows.shape
    return {
        "layers": [programmed_controller(steps, reads)],
        f"{layer}_kernel": rows,
        f"{layer}_bias": np.zeros(numbers),
        "output_kernel": np.concatenate([np.zeros((steps, reads)), np.eye(reads)]),
        "output_bias": np.zeros(reads),
    }


def random_controller(rng, inputs, units, reads, numbers, layer, scale=1.0):
    return {
        "layers": [random_unit(rng, inputs + reads, units, 4), random_unit(rng, units, units, 4)],
        f"{layer}_kernel": scale * rng.normal(size=(units, numbers)),
        f"{layer}_bias": scale * rng.normal(size=numbers),
        "output_kernel": rng.normal(size=(units + reads, units)),
        "output_bias": rng.normal(size=units),
    }


def assert_wired(weights, inputs, result, before):
    """The controller read [x; r_{t-1}], and the output is of [h_t; r_t]."""
    states = [recurrent.zero_state("lstm", layer) for layer in weights["layers"]]
    for t, x in enumerate(inputs):
        h, states = recurrent.stack_step("lstm", weights["layers"], np.r_[x, before], states)
        before = np.concatenate(list(result["reads"][t]))
        expected = np.r_[h, before] @ weights["output_kernel"] + weights["output_bias"]
        np.testing.assert_allclose(result["outputs"][t], expected)
    np.testing.assert_allclose(result["state"], states)


def random_ntm(rng, num_read, num_write, slots=5, width=3, inputs=2, taps=3, scale=1.0):
    heads = num_read + num_write
    numbers = heads * (width + taps + 3) + 2 * num_write * width
    return {
        **random_controller(rng, inputs, 4, num_read * width, numbers, "head", scale),
        "initial_memory": rng.normal(size=(slots, width)),
        "initial_weights": rng.normal(size=(heads, slots)),
        "initial_reads": rng.normal(size=(num_read, width)),
    }


def dnc_numbers(num_read, num_write, width):
    return num_read * (width + 3 + 2 * num_write) + num_write * (3 * width + 3)


def random_dnc(rng, num_read, num_write, width=3, inputs=2, scale=1.0):
    numbers = dnc_numbers(num_read, num_write, width)
    return random_controller(rng, inputs, 4, num_read * width, numbers, "interface", scale)


def random_hop(rng, reads, units=4):
    """GRU_hop of a controller of so many units over so many numbers that are read."""
    return random_unit(rng, reads, units, 3)


def random_repaired_dnc(rng, num_read, num_write, options, width=3):
    """Weights of a DNC with any options, layer normalisation and GRU_hop among them."""
    numbers = dnc_interface.interface_size(width, num_read, num_write, options)
    weights = random_controller(rng, 2, 4, num_read * width, numbers, "interface")
    weights["interface_gain"] = rng.normal(size=numbers)
    weights["interface_offset"] = rng.normal(size=numbers)
    weights["hop"] = random_hop(rng, num_read * width)
    return weights


def repaired_interface(num_read, num_write, options, width=3, **parts):
    """A DNC's interface vector with these parts before activation, and 0 elsewhere."""
    shapes = dnc_interface.part_shapes(width, num_read, num_write, options)
    assert set(parts) <= set(shapes)
    arrays = [np.broadcast_to(parts.get(name, 0.0), shape) for name, shape in shapes.items()]
    return np.concatenate([np.ravel(array) for array in arrays])
