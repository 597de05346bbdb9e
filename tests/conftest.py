"""Settings that must stand before TensorFlow is imported, and shared fixtures."""

import os

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
