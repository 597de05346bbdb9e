"""Streams and files of the command line: closed pipes, links, devices."""

import os
import subprocess
import sys
import threading

import pytest
from helpers.command_line import ROOT, command

from tfmann import nmt
from tfmann.cli import validation
from tfmann.data import text_files
from tfmann.errors import UsageError


def test_help_into_a_closed_pipe_says_nothing():
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "tfmann.nmt", "--help"],
        stdout=writing, stderr=subprocess.PIPE, cwd=ROOT,
    )  # fmt: skip
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, b"")


def test_output_that_cannot_be_written_is_one_message():
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "tfmann.nmt", "--help"],
            stdout=full, stderr=subprocess.PIPE, cwd=ROOT,
        )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.startswith(b"tfmann: ") and done.stderr.count(b"\n") == 1


def test_a_pipe_is_written_to_and_not_replaced(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    contents = []
    reader = threading.Thread(target=lambda: contents.append(path.read_bytes()), daemon=True)
    reader.start()
    text_files.write_lines(path, ["a", "b"])
    reader.join(timeout=60)
    assert contents == [b"a\nb\n"]
    assert path.is_fifo() and os.listdir(tmp_path) == ["pipe"]


def test_a_link_to_a_file_stays_one(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "file")
    text_files.write_lines(tmp_path / "link", ["a"])
    assert (tmp_path / "link").is_symlink() and (tmp_path / "file").read_text() == "a\n"


def test_a_device_may_be_read_and_written(tmp_path):
    flags = {"out_dir": tmp_path, "inference_input_file": "/dev/null",
             "inference_output_file": "/dev/null", "alignment_file": "/dev/null"}  # fmt: skip
    values, _ = nmt.parse(command(tmp_path, **flags))
    validation.check_flags("infer", values)


def test_a_link_to_what_is_read_is_not_written(tmp_path):
    (tmp_path / "in").write_text("mine\n")
    (tmp_path / "link").symlink_to("in")
    flags = {"inference_input_file": tmp_path / "in", "inference_output_file": tmp_path / "link"}
    values, _ = nmt.parse(command(tmp_path, **flags))
    with pytest.raises(UsageError, match="inference_output_file and --inference_input_file are"):
        validation.check_flags("infer", values)


@pytest.mark.parametrize(
    "module, closed, words",
    [
        ("nmt --inference_input_file=- --out_dir", "<&-", b"standard input is closed: give a file"),
        ("cli.translate --model", "<&-", b"standard input is closed: give --input="),
        ("cli.translate --model", ">&-", b"standard output is closed: give --input="),
    ],
)
def test_closed_streams_are_named_before_anything_is_loaded(module, closed, words, tmp_path):
    line = f"{sys.executable} -m tfmann.{module}={tmp_path} {closed}"
    done = subprocess.run(["sh", "-c", line], stderr=subprocess.PIPE, cwd=ROOT)
    assert done.returncode == 1
    assert done.stderr.startswith(b"tfmann: " + words) and done.stderr.count(b"\n") == 1
