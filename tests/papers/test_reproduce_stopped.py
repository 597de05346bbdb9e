"""A table's command that gets a signal to stop lets training and decoding save first."""

import os
import signal
import subprocess
import sys

import pytest

TRAINING = """#!/bin/sh
trap 'sleep 1; echo saved > saved; exit 143' TERM
trap '' INT HUP
echo started
for _ in $(seq 600); do sleep 0.05; done
"""
TABLE = """
import signal, sys
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup may have it ignored
from tfmann import errors
from tfmann.papers import inspections, processes
sys.executable = "./training"
sys.exit(errors.run_command(lambda: WORK, "resumes"))
"""


TRAIN = "processes.run_module('tfmann.nmt', {}, 'nowhere')"
DECODE = "processes.decode('infer', 'nowhere', {}, 'a test')"
INSPECT = "inspections.inspect_run({}, 'nowhere', 'file')"


@pytest.mark.parametrize(
    "work, number, status, whole_group",  # a terminal signals all processes, `kill` one
    [
        (TRAIN, signal.SIGINT, 130, True),
        pytest.param(TRAIN, signal.SIGINT, 130, False, marks=pytest.mark.thorough),
        pytest.param(TRAIN, signal.SIGTERM, 143, True, marks=pytest.mark.thorough),
        (TRAIN, signal.SIGTERM, 143, False),
        pytest.param(TRAIN, signal.SIGHUP, 129, True, marks=pytest.mark.thorough),
        (DECODE, signal.SIGHUP, 129, False),
        (INSPECT, signal.SIGTERM, 143, False),
    ],
)
def test_a_run_saves_before_the_table_s_command_ends(tmp_path, work, number, status, whole_group):
    (tmp_path / "training").write_text(TRAINING)
    (tmp_path / "training").chmod(0o755)
    table = subprocess.Popen(
        [sys.executable, "-c", TABLE.replace("WORK", work)],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": os.getcwd()},
    )
    with table:
        assert table.stdout.readline() == "started\n"
        (os.killpg if whole_group else os.kill)(table.pid, number)
        message = table.communicate(timeout=120)[1]
    assert table.returncode == status
    assert (tmp_path / "saved").read_text() == "saved\n"
    assert ("resumes" in message) == (number == signal.SIGINT)
