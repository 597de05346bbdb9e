"""A table's command that gets a signal to stop lets its training save first."""

import os
import signal
import subprocess
import sys

import pytest

TRAINING = """#!/bin/sh
trap 'sleep 1; echo saved > saved; exit 143' TERM
trap '' INT
echo started
while :; do sleep 0.05; done
"""
TABLE = """
import sys
from tfmann import errors
from tfmann.papers import table_runs
sys.executable = "./training"
sys.exit(errors.run_command(lambda: table_runs.run_nmt({}, "nowhere"), "resumes"))
"""


@pytest.mark.parametrize(
    "whole_group", [True, False]
)  # a terminal signals all processes, `kill` one
@pytest.mark.parametrize("number, status", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_training_saves_before_the_table_s_command_ends(tmp_path, number, status, whole_group):
    (tmp_path / "training").write_text(TRAINING)
    (tmp_path / "training").chmod(0o755)
    table = subprocess.Popen(
        [sys.executable, "-c", TABLE],
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
        message = table.communicate(timeout=20)[1]
    assert table.returncode == status
    assert (tmp_path / "saved").read_text() == "saved\n"
    assert ("resumes" in message) == (number == signal.SIGINT)
