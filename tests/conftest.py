"""Settings that must stand before TensorFlow is imported, and shared fixtures."""

import gc
import os
import sys

import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")


@pytest.fixture
def untraced():
    """Compiled functions run as they are written: slower steps, and no tracing."""
    import tensorflow as tf

    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)


@pytest.fixture(autouse=True)
def free_graphs():
    """Frees the graphs that a test has traced.

    TensorFlow registers every gradient of `tf.custom_gradient` that is traced under a name of its
    own, for as long as the process lives, and the gradient keeps its whole graph: 30 MB a model.
    """
    yield
    ops = sys.modules.get("tensorflow.python.framework.ops")
    if ops is None:  # nothing has imported TensorFlow
        return
    gradients = ops.gradient_registry._registry
    traced = [name for name in gradients if name.startswith("CustomGradient-")]
    for name in traced:
        del gradients[name]
    if traced:
        gc.collect()
