"""Several logical devices, in a process of its own: they are settled before TensorFlow begins."""

import os
import subprocess
import sys
from pathlib import Path

import tensorflow as tf

TESTS = Path(__file__).parents[1]


def two_cpus():
    """Makes the processor two devices."""
    cpu = tf.config.list_physical_devices("CPU")[0]
    device = tf.config.LogicalDeviceConfiguration()
    tf.config.set_logical_device_configuration(cpu, [device, device])


def python_path():
    """The search path for a new process: the project, the tests, and the path of this one."""
    inherited = os.environ.get("PYTHONPATH")
    return os.pathsep.join([str(TESTS.parent), str(TESTS), *([inherited] if inherited else [])])


def run_main(path, folder, *arguments):
    """Calls `main(folder, *arguments)` of a test module, which prints `done` at its end."""
    module = Path(path).stem
    result = subprocess.run(
        [sys.executable, "-c", f"import {module}; {module}.main{(str(folder), *arguments)!r}"],
        cwd=Path(path).parent,
        env={**os.environ, "PYTHONPATH": python_path()},
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert result.returncode == 0 and "done" in result.stdout, result.stderr
