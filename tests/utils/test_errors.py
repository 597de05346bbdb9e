"""Ends of a command line: a status, and at most one message."""

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from tfmann.errors import Terminated, UsageError, UserError, interruptible, run_command


@pytest.mark.parametrize(
    "error,status,message",
    [
        (UserError("f.txt, line 3: no tab"), 1, "tfmann: f.txt, line 3: no tab\n"),
        (UsageError("there is no --x"), 2, "tfmann: there is no --x\n"),
        (KeyboardInterrupt(), 130, "tfmann: the same command resumes\n"),
    ],
)
def test_what_goes_wrong_is_one_message(error, status, message, capsys):
    def work():
        raise error

    assert run_command(work, "the same command resumes") == status
    assert capsys.readouterr() == ("", message)


@pytest.mark.parametrize(
    "reason", ["failed to map segment from shared object", "cannot allocate memory in static TLS"]
)
def test_a_library_that_does_not_fit_into_memory_is_one_message(reason, capsys):
    def work():
        raise ImportError(f"libtensorflow_cc.so.2: {reason}")

    assert run_command(work) == 1
    message = f"tfmann: memory has run out: libtensorflow_cc.so.2: {reason}. This is a library"
    err = capsys.readouterr().err
    assert err.startswith(message) and err.count("\n") == 1


def test_a_library_that_is_missing_keeps_its_traceback():
    def work():
        raise ImportError("libcuda.so.1: cannot open shared object file")

    with pytest.raises(ImportError):
        run_command(work)


def test_work_that_is_done_returns_its_status():
    assert [run_command(lambda value=value: value) for value in (None, 0, 3)] == [0, 0, 3]


def test_what_is_no_mistake_of_the_user_keeps_its_traceback():
    with pytest.raises(ZeroDivisionError):
        run_command(lambda: 1 // 0)


def test_signals_that_somebody_has_settled_stay_settled():
    settled = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup has it
    try:
        with interruptible():
            assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
            assert signal.getsignal(signal.SIGTERM) != signal.SIG_DFL
            signal.raise_signal(signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
        thread = ThreadPoolExecutor(1)
        with thread:
            assert thread.submit(lambda: interruptible().__enter__()).result() is None
    finally:
        signal.signal(signal.SIGHUP, settled)


@pytest.mark.parametrize(
    "number, status, message",
    [(signal.SIGTERM, 143, "ended by SIGTERM"), (signal.SIGINT, 130, "interrupted")],
)
def test_a_signal_that_other_code_turns_into_its_own_error_is_still_one(
    number, status, message, capsys
):
    def work():
        with interruptible():
            try:
                os.kill(os.getpid(), number)
            except BaseException:  # as C++ code does that asks a Python object for an attribute
                raise AttributeError("'int' object has no attribute 'keys'") from None

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's job ignores it
    try:
        assert run_command(work) == status
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert capsys.readouterr().err == f"tfmann: {message}\n"


def test_a_second_signal_ends_at_once():
    with pytest.raises(Terminated), interruptible():
        try:
            signal.raise_signal(signal.SIGTERM)
        finally:
            assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


CLOSED = """
import os, sys
from tfmann.errors import run_command
def work():
    with open(sys.argv[1], "w") as file:
        print("a message", file=sys.stderr)
        os.write(2, b"as C would")
        os.write(1, b"out")
        return 7 if file.fileno() > 2 and not sys.stderr.isatty() else 8
raise SystemExit(run_command(work))
"""


@pytest.mark.parametrize("closed", ["2>&-", "<&- 2>&-", "<&- >&- 2>&-"])
def test_what_is_written_is_not_mixed_with_closed_streams(closed, tmp_path):
    argv = ["sh", "-c", f'exec "$@" {closed}', "sh", sys.executable, "-c", CLOSED, tmp_path / "f"]
    done = subprocess.run(argv, stdout=subprocess.PIPE)
    assert done.returncode == 7
    assert done.stdout == (b"" if ">&- 2" in closed else b"out")
    assert (tmp_path / "f").read_bytes() == b""


@pytest.mark.parametrize(
    "to,message", [("/dev/full", "output: No space left on device"), ("|", "")]
)
def test_output_that_cannot_be_written(to, message):
    work = "import sys; print('x' * 100000); sys.stdout.flush()"
    code = (
        f"from tfmann.errors import run_command; sys_exit = run_command(lambda: exec({work!r})); "
    )
    code += "raise SystemExit(sys_exit)"
    argv = [sys.executable, "-c", code]
    read_end, write_end = os.pipe()
    os.close(read_end)  # a reader that has gone
    full = os.open("/dev/full", os.O_WRONLY)
    done = subprocess.run(argv, stdout=write_end if to == "|" else full, stderr=subprocess.PIPE)
    os.close(write_end)
    os.close(full)
    error = done.stderr.decode()
    assert done.returncode == 1
    assert message in error and "Traceback" not in error
    assert error.count("\n") == (1 if message else 0)
