"""The loss of RNNSearch with a cache: its gradients, and two ways to the cross-entropy."""

import itertools

import numpy as np
import pytest
import tensorflow as tf
from helpers import small_models
from helpers.cache_models import (
    FUSIONS,
    LENGTHS,
    loss_of,
    model_of,
    prepare,
    random_caches,
    weights_of,
)
from oracles import cache as oracle

GATE_WEIGHTS = {"deep": [0.0], "shallow": [0.0, 0.7]}
OTHERS = ["scaled_dot", "cosine", "projected", "uniform", "nothing"]


def loss_of_the_oracle(weights, cache, sentence, fusion, gate_weight=0.0):
    decoded = oracle.decode_document(weights, [sentence], 0)[0]  # the recurrence alone
    total = 0.0
    for t, word in enumerate(sentence.target_words):
        parts = decoded["states"][t], decoded["contexts"][t], sentence.target_embeddings[t]
        step = oracle.step(weights, cache, *parts, fusion)
        total -= np.log(step["probabilities"][word])
        if gate_weight:
            own = step["plain_probabilities"]
            cached = oracle.word_probabilities(cache, step["match"], len(own))
            total += gate_weight * oracle.gate_loss(own[word], cached[word], step["gates"][0])
    return total


@pytest.mark.parametrize(
    "fusion,gate_weight", [(kind, weight) for kind in FUSIONS for weight in GATE_WEIGHTS[kind]]
)
def test_the_gate_s_gradients_are_the_slopes_of_the_oracle(fusion, gate_weight):
    model = model_of(fusion, cache_gate_loss_weight=gate_weight)
    batch = small_models.batch([(5, 6)])
    caches = random_caches(model, 1)
    with tf.GradientTape() as tape:
        loss = loss_of(model, batch, caches)
    cell = model.cell.document_memory
    gate = {
        "state": cell.gate_state_kernel,
        "context": cell.gate_context_kernel,
        "retrieved": cell.gate_retrieved_kernel,
    }
    gradients = tape.gradient(loss, gate)
    annotations = prepare(model, batch).encoded.annotations[0].numpy()
    words = model.embed_target(tf.constant(batch.target_in))[0].numpy()
    sentence = oracle.Sentence(annotations, words, batch.target_out[0])
    filled = (caches.written[0].numpy() >= 0).astype(int)
    theirs = oracle.Cache(*(part[0].numpy() for part in caches[:3]), filled, 0 * filled)
    weights = weights_of(model)
    assert float(loss) == pytest.approx(
        loss_of_the_oracle(weights, theirs, sentence, fusion, gate_weight), rel=1e-5
    )
    stream = np.random.default_rng(0)
    for name, gradient in gradients.items():
        assert np.all(np.abs(gradient.numpy()).max(axis=0) > 1e-6), name
        kernel, direction = f"gate_{name}_kernel", stream.normal(size=gradient.shape)
        ends = [
            loss_of_the_oracle(
                {**weights, kernel: weights[kernel] + sign * 1e-5 * direction},
                theirs, sentence, fusion, gate_weight,
            )
            for sign in (1, -1)
        ]  # fmt: skip
        slope = (ends[0] - ends[1]) / 2e-5
        assert float((gradient.numpy() * direction).sum()) == pytest.approx(slope, rel=1e-3), name


@pytest.mark.quick("deep-cosine", "shallow-dot")
@pytest.mark.parametrize(
    "fusion,matching", [*((kind, "dot") for kind in FUSIONS), *itertools.product(["deep"], OTHERS)]
)
def test_all_gradients_equal_finite_differences(fusion, matching):
    model = model_of(fusion, init_weight=0.5, cache_matching=matching)
    batch = small_models.batch(LENGTHS)
    caches = random_caches(model, len(LENGTHS))
    run = tf.function(lambda: loss_of(model, batch, caches), autograph=False)
    with tf.GradientTape() as tape:
        loss = run()
    gradients = tape.gradient(loss, model.trainable_variables)
    stream = np.random.default_rng(1)
    for variable, gradient in zip(model.trainable_variables, gradients):
        direction = stream.normal(size=variable.shape).astype(np.float32)
        direction /= np.linalg.norm(direction)
        start, losses = variable.numpy(), []
        for sign in (1, -1):
            variable.assign(start + sign * 1e-2 * direction)
            losses.append(float(run()))
        variable.assign(start)
        numeric = (losses[0] - losses[1]) / 2e-2
        analytic = float((tf.convert_to_tensor(gradient).numpy() * direction).sum())
        assert abs(numeric - analytic) < 0.02 * max(1.0, abs(analytic)), variable.name


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_both_roads_to_the_cross_entropy_agree(smoothing):
    deep = model_of("deep", label_smoothing=smoothing)
    shallow = model_of("shallow", label_smoothing=smoothing)
    for variable, deep_variable in zip(shallow.trainable_variables, deep.trainable_variables):
        if variable.shape == deep_variable.shape:
            deep_variable.assign(variable)
    batch = small_models.batch(LENGTHS)
    results = []
    for model in (deep, shallow):  # over empty caches
        with tf.GradientTape() as tape:
            loss = loss_of(model, batch)
        results.append([loss, *tape.gradient(loss, model.trainable_variables)])
    for of_deep, of_shallow in zip(*results):
        ours, theirs = tf.convert_to_tensor(of_deep), tf.convert_to_tensor(of_shallow)
        if ours.shape == theirs.shape:  # all but the gate's
            np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-4)
