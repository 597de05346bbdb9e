"""Messages for whoever writes a cell that does not keep to the contract."""

from typing import NamedTuple

import pytest
import tensorflow as tf

from tfmann import config
from tfmann.cells import contract
from tfmann.cells.base import StepOutput
from tfmann.config.cells import CellSpec, RNNSearchOptions
from tfmann.models import seq2seq

B = 2


class Slots(NamedTuple):
    keys: tf.Tensor  # [B, 3, 4]
    layers: tuple = ()


BEFORE = Slots(tf.zeros([B, 3, 4]), (tf.zeros([B, 5]), tf.zeros([B, 5])))


def step(state=BEFORE, output=None, **diagnostics):
    output = tf.zeros([B, 6]) if output is None else output
    values = {name: tf.zeros([B, *shape]) for name, shape in diagnostics.items()}
    return StepOutput(output, state, values)


def shows(value):
    return StepOutput(tf.zeros([B, 6]), BEFORE, {"mine": value})


def test_a_step_as_it_should_be_passes():
    contract.require_state(BEFORE)
    heads = {"read_weights": [2, 7], "write_weights": [1, 7], "content_weights": [3, 7]}
    contract.require_step(step(**heads, write_gate=[1, 1], alignments=[9], mine=[4]), BEFORE, 6)


def test_unknown_sizes_pass():
    shapes = []

    @tf.function(input_signature=[tf.TensorSpec([None, None, 4])])
    def run(keys):
        contract.require_state(Slots(keys))
        contract.require_step(step(Slots(keys)), Slots(tf.zeros([B, 3, 4])), 6)
        shapes.append(keys.shape)
        return keys

    run(tf.zeros([B, 3, 4]))
    assert shapes == [tf.TensorShape([None, None, 4])]


@pytest.mark.parametrize(
    "state, message",
    [
        (Slots(tf.zeros([B])), r"state\.keys is \[B\]; .* two axes or more"),
        (Slots(tf.zeros([B, 1], tf.int32)), r"state\.keys: .* float tensor; it is of int32"),
        ({"old": tf.zeros([B, 1]), "new": 3}, r"state\['new'\]: .* it is 3"),
    ],
)
def test_a_first_state_that_cannot_be_carried_is_named(state, message):
    with pytest.raises(TypeError, match=message):
        contract.require_state(state)


@pytest.mark.parametrize(
    "result, message",
    [
        ((tf.zeros([B, 6]), BEFORE), r"returns StepOutput\(output, .*, not a tuple"),
        (step(output=tf.zeros([B, 12])), r"output is \[B, 12\]; .* output_width: \[B, 6\]"),
        (step(output=tf.zeros([B])), r"output is \[B\]"),
        (
            step(BEFORE._replace(keys=tf.zeros([B, 4, 3]))),
            r"state\.keys is \[B, 4, 3\] after a step and \[B, 3, 4\] before",
        ),
        (
            step(BEFORE._replace(layers=(tf.zeros([B, 5]),))),
            r"state\.layers\[0\]; expected .*\[1\]",
        ),
        (step(read_weights=[7]), r"read_weights: expected \[B, R, N\], found \[B, 7\]"),
        (step(write_gate=[1]), r"write_gate: expected \[B, H, 1\], found \[B, 1\]"),
        (step(write_gate=[1, 3]), r"write_gate: .* found \[B, 1, 3\], where 1 is 1"),
        (step(read_weights=[1, 7], usage=[8]), r"usage: .* found \[B, 8\], where N is 7"),
        (
            step(read_weights=[1, 7], write_weights=[1, 7], content_weights=[1, 7]),
            "of 1 heads R.H, with 1 read heads and 1 write heads",
        ),
        (step()._replace(diagnostics=None), "diagnostics of a step are a dict .* not a NoneType"),
        (
            shows(tf.zeros([B, 1], tf.int32)),
            "diagnostic mine: expected a float32 tensor; it is of int32",
        ),
        (shows(tf.zeros([B, 1], tf.float16)), "diagnostic mine: .* it is of float16"),
        (shows(0.5), "diagnostic mine: .* it is 0.5"),
        (shows(tf.constant(0.5)), r"diagnostic mine has the shape \(\): its first axis"),
        (shows(tf.zeros([6, 4])), r"diagnostic mine has the shape \(6, 4\): its first axis"),
        (
            step(output=tf.zeros([B, 6], tf.float16)),
            "output: expected a float32 tensor; it is of float16",
        ),
        (
            step(BEFORE._replace(keys=tf.zeros([B, 3, 4], tf.float64))),
            r"state\.keys is of float64 after a step and of float32 before",
        ),
    ],
)
def test_what_is_wrong_with_a_step_is_named(result, message):
    with pytest.raises(TypeError, match=message):
        contract.require_step(result, BEFORE, 6)


def test_a_weight_among_the_diagnostics_is_found_where_the_batch_is_unknown():
    @tf.function(input_signature=[tf.TensorSpec([None, 3, 4])])
    def run(keys):
        rows = tf.shape(keys)[0]
        result = StepOutput(tf.zeros([rows, 6]), Slots(keys), {"mine": tf.zeros([6, 4])})
        contract.require_step(result, Slots(keys), 6)

    with pytest.raises(TypeError, match="diagnostic mine"):
        run(tf.zeros([B, 3, 4]))


def test_alignments_are_missed_where_the_entry_promises_them():
    contract.require_alignments("luong", step(alignments=[5]))
    contract.require_alignments("ntm", step())
    with pytest.raises(TypeError, match="'luong' attends to the source .* has_alignments=False"):
        contract.require_alignments("luong", step())
    with pytest.raises(TypeError, match="not a tuple"):
        contract.recorded_shapes(lambda *_: (), tf.zeros([B, 1]), BEFORE, ("mine",))


@pytest.mark.parametrize(
    "module, name, message",
    [
        ("minee", "MineCell", "'mine' of CELLS .*: there is no module tfmann.cells.minee"),
        ("luong", "MineCell", "tfmann.cells.luong has no DecoderCell 'MineCell'"),
        ("luong", "LuongState", "tfmann.cells.luong has no DecoderCell 'LuongState'"),
    ],
)
def test_an_entry_that_names_no_cell_is_refused(monkeypatch, module, name, message):
    spec = CellSpec(module, name, RNNSearchOptions)
    monkeypatch.setattr(config, "cell_spec", lambda cell: spec)
    with pytest.raises(TypeError, match=message):
        seq2seq._cell_class("mine")
