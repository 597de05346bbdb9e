"""Runs of the shipped configurations, trained once per module."""

import pytest
from helpers import tiny_runs
from helpers.shipped_runs import PAIRS, WATCHED, training_command

from tfmann import nmt


@pytest.fixture(scope="module")
def untraced_module():
    """As `untraced`, for fixtures of a module too."""
    import tensorflow as tf

    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)


@pytest.fixture
def traced(untraced_module):
    """Compiles functions in a test of such a module."""
    import tensorflow as tf

    tf.config.run_functions_eagerly(False)
    yield
    tf.config.run_functions_eagerly(True)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return tiny_runs.corpus(tmp_path_factory.mktemp("corpus"), PAIRS)


@pytest.fixture(scope="module")
def small_data(tmp_path_factory):
    """For runs of which only the course matters."""
    return tiny_runs.corpus(tmp_path_factory.mktemp("corpus"), 40, dev=6)


@pytest.fixture(scope="module")
def trained(data, tmp_path_factory):
    """Trains a tiny configuration at its first use; returns its folder."""
    folders = {}

    def folder(name):
        if name not in folders:
            folders[name] = tmp_path_factory.mktemp(name) / "out"
            images = 2 if name in WATCHED else 0
            argv = training_command(name, data, folders[name], num_attention_images=images)
            assert nmt.main(argv) == 0
        return folders[name]

    return folder
