"""Custom gradients: those of a trained graph, and none where nothing is trained."""

import gc
import logging
import weakref
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from helpers.translations import LINES, PAIRS, translator
from tensorflow.python.framework import ops

import tfmann
from tfmann.ops.gradients import custom_gradient, without_gradients


@custom_gradient
def three_times(values):
    return 3.0 * values, lambda d: 30.0 * d  # not the true gradient, to be recognised


@pytest.mark.parametrize("compiled", [tf.function, lambda function: function])
def test_a_gradient_is_the_given_one_unless_nothing_needs_it(compiled):
    def differentiate(values):
        with tf.GradientTape() as tape:
            tape.watch(values)
            results = three_times(values)
        return results, tape.gradient(results, values)

    values = tf.constant([1.0, 2.0])
    for function, slope in ((differentiate, 30.0), (without_gradients(differentiate), 3.0)):
        results, d = compiled(function)(values)
        np.testing.assert_array_equal(results, [3.0, 6.0])
        np.testing.assert_array_equal(d, [slope, slope])


def test_an_error_does_not_turn_gradients_off():
    @without_gradients
    def fail():
        raise ValueError

    with pytest.raises(ValueError):
        fail()
    values = tf.Variable([1.0])
    with tf.GradientTape() as tape:
        results = three_times(values)
    np.testing.assert_array_equal(tape.gradient(results, values), [30.0])


def test_many_functions_of_one_method_are_no_warning(caplog):
    """Each model that is loaded compiles its own."""
    tensorflow = logging.getLogger("tensorflow")
    tensorflow.addHandler(caplog.handler)
    try:
        for number in range(6):
            tf.function(without_gradients(three_times), autograph=False)(
                tf.constant([float(number)])
            )
    finally:
        tensorflow.removeHandler(caplog.handler)
    assert caplog.messages == []


def test_nothing_else_registers_gradients():
    package = Path(tfmann.__file__).parent
    users = [
        path.name for path in package.rglob("*.py") if "tf.custom_gradient" in path.read_text()
    ]
    assert users == ["gradients.py"]


def registered():
    return {name for name in ops.gradient_registry._registry if name.startswith("CustomGradient-")}


@pytest.mark.quick("luong", "ntm")
@pytest.mark.parametrize("variant", ["luong", "ntm", "rnnsearch", "kvmematt-3", "memdec"])
def test_a_search_that_is_no_longer_used_is_freed(variant):
    """A server compiles one for each beam width, which would keep its graph and the weights."""
    before = registered()
    searched = translator(variant, beam_width=2)
    list(searched.translate(LINES[:2]))
    searched.force(PAIRS[:1])
    search = list(searched._compiled.values())[-1]
    graph = weakref.ref(search.get_concrete_function().graph)
    assert registered() == before
    translator.cache_clear()
    del searched, search
    gc.collect()
    assert graph() is None
