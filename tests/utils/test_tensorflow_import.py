"""TensorFlow is imported without its messages, but not without those of a failure."""

import os
import subprocess
import sys

import pytest
from helpers import tiny_runs

# What C++ code writes does not pass sys.stderr.
TALKATIVE = "import os; os.write(2, b'I0000 no CUDA here\\n')"
MESSAGE = "I0000 no CUDA here\n"
IMPORT = "from tfmann.utils.tensorflow_import import import_tensorflow; import_tensorflow(); "


def imported(folder, tensorflow, code="", **environment):
    """Imports a module called tensorflow in another process; returns its standard error."""
    (folder / "tensorflow.py").write_text(tensorflow)
    path = os.pathsep.join([str(folder), str(tiny_runs.ROOT)])
    others = {name: value for name, value in os.environ.items() if name != "TF_CPP_MIN_LOG_LEVEL"}
    result = subprocess.run(
        [sys.executable, "-c", f"import sys; {code}{IMPORT}print('after', file=sys.stderr)"],
        env={**others, "PYTHONPATH": path, **environment}, stderr=subprocess.PIPE,
    )  # fmt: skip
    return result.stderr.decode()


@pytest.mark.parametrize("level, shown", [(None, ""), ("3", ""), ("0", MESSAGE)])
def test_messages_are_shown_if_they_are_asked_for(tmp_path, level, shown):
    environment = {"TF_CPP_MIN_LOG_LEVEL": level} if level else {}
    assert imported(tmp_path, TALKATIVE, **environment) == shown + "after\n"


def test_an_import_that_fails_shows_them(tmp_path):
    stderr = imported(tmp_path, TALKATIVE + "\nraise ImportError('no library')")
    assert stderr.startswith(MESSAGE) and stderr.endswith("ImportError: no library\n")


def test_a_terminal_is_told_what_takes_so_long(tmp_path):
    assert imported(tmp_path, "", "sys.stderr.isatty = lambda: True; ").startswith(
        "loading TensorFlow\n"
    )


def test_what_is_imported_already_is_not_announced(tmp_path):
    code = "import tensorflow; sys.stderr.isatty = lambda: True; "
    assert imported(tmp_path, "", code) == "after\n"
