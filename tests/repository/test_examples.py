"""The examples run: on less data in seconds, and as they are, with what they promise, if slow."""

import contextlib
import io
import json
import re
import sys
import types
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from tfmann.models.keras_cell import keras_cell

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SMALLER = {
    "[2048, ": "[32, ",
    "np.ones([2048,": "np.ones([32,",
    "[4096, ": "[32, ",
    'weighted_metrics=["accuracy"])': 'weighted_metrics=["accuracy"], run_eagerly=True)',
    "epochs=6": "epochs=1",
    "epochs=4": "epochs=1",
    "train=4000, dev=100, test=100": "train=64, dev=6, test=6",
    "--num_train_steps=600": "--num_train_steps=2",
    "--steps_per_external_eval=300": "--steps_per_external_eval=2",
}


def run(program, folder, monkeypatch):
    """Runs a program in a folder; returns its names, and what it printed."""
    monkeypatch.chdir(folder)
    printed, names = io.StringIO(), {}
    with contextlib.redirect_stdout(printed):
        exec(compile(program, "example", "exec"), names)
    return names, printed.getvalue()


def shrink_program(program):
    for large, small in SMALLER.items():
        program = program.replace(large, small)
    return program


@pytest.fixture
def notebook(monkeypatch):
    """The notebook's code, and the images that it shows; without IPython."""
    images = []
    display = types.ModuleType("IPython.display")
    display.Image = images.append
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    content = json.loads((EXAMPLES / "memory.ipynb").read_text("utf-8"))
    assert (content["nbformat"], content["nbformat_minor"]) == (4, 5)
    cells = [cell for cell in content["cells"] if cell["cell_type"] == "code"]
    return "\n".join("".join(cell["source"]) for cell in cells), images


def copy_task():
    return (EXAMPLES / "copy_task.py").read_text("utf-8")


def reversal_task():
    return (EXAMPLES / "reversal_task.py").read_text("utf-8")


def test_the_page_about_keras_has_the_example_and_a_dnc():
    page = (EXAMPLES.parent / "docs" / "keras.md").read_text("utf-8")
    program, line, reversal = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert copy_task().endswith(program)
    names = {"keras_cell": keras_cell, "WIDTH": 4}
    exec(line, names)
    outputs = tf.keras.layers.RNN(names["cell"], return_sequences=True)(tf.ones([2, 3, 4]))
    assert outputs.shape == [2, 3, 64] and np.isfinite(outputs).all()
    assert reversal_task().endswith(reversal)


def test_the_copy_task_runs(tmp_path, monkeypatch):
    program = shrink_program(copy_task())
    assert program != copy_task()
    names, _ = run(program, tmp_path, monkeypatch)
    assert len(names["history"].history["loss"]) == 1


def test_the_reversal_task_runs(tmp_path, monkeypatch):
    program = shrink_program(reversal_task())
    assert program != reversal_task()
    names, _ = run(program, tmp_path, monkeypatch)
    np.testing.assert_allclose(tf.reduce_sum(names["attention"], axis=1), np.ones(6), atol=1e-5)
    assert np.shape(names["chosen"]) == (6, 32, 1)


@pytest.mark.thorough
def test_the_notebook_runs(notebook, tmp_path, monkeypatch):
    program, images = notebook
    assert shrink_program(program) != program
    names, _ = run(shrink_program(program), tmp_path, monkeypatch)
    assert names["status"] == 0 and len(names["translations"]) == 5
    assert len(images) == 2 and all(image.startswith(b"\x89PNG") for image in images)


@pytest.mark.slow
@pytest.mark.parametrize(("cell", "epochs"), [("ntm", 6), ("dnc", 15)])
def test_the_copy_task_is_learned(cell, epochs, tmp_path, monkeypatch):
    program = copy_task().replace("epochs=6", f"epochs={epochs}")
    if cell == "dnc":  # the line of the page that takes the place of the NTM's
        page = (EXAMPLES.parent / "docs" / "keras.md").read_text("utf-8")
        line = re.search(r'^cell = keras_cell\("dnc".*$', page, re.MULTILINE)[0]
        program = re.sub(r'^cell = keras_cell\("ntm".*$', line, program, flags=re.MULTILINE)
        assert line in program
    names, _ = run(program, tmp_path, monkeypatch)
    assert names["history"].history["binary_accuracy"][-1] > 0.98


@pytest.mark.slow
def test_the_reversal_task_is_learned(tmp_path, monkeypatch):
    names, _ = run(reversal_task(), tmp_path, monkeypatch)
    assert names["history"].history["accuracy"][-1] > 0.99
    length = names["lengths"][0, 0]
    backwards = np.arange(length)[::-1]
    assert list(np.argmax(names["attention"][:length], axis=1)) == list(backwards)
    words, real = np.hstack(names["chosen"]), names["real"][:32]
    assert np.mean((words == names["targets"][:32])[real]) > 0.99


@pytest.mark.slow
def test_the_notebook_learns_to_translate(notebook, tmp_path, monkeypatch):
    program, _ = notebook
    _, printed = run(program, tmp_path, monkeypatch)
    assert float(re.search(r"best, test: BLEU (\S+),", printed)[1]) > 20
