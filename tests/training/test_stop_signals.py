"""Signals that ask a run to stop: what is remembered and said."""

import os
import signal

import pytest

from tfmann.training.stop_signals import catch_stop_signals
from tfmann.training.trainer import Stopped


@pytest.fixture
def heard():
    """Signals are not ignored, as they are in a shell's background and after `nohup`."""
    handlers = {signal.SIGINT: signal.default_int_handler, signal.SIGHUP: signal.SIG_DFL}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize(
    "number, status", [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_signal_is_a_flag_and_is_answered_at_once(number, status, capfd, heard):
    with catch_stop_signals() as stop:
        assert not stop
        os.kill(os.getpid(), number)
        assert stop and stop.number == number
        assert capfd.readouterr().err == "stopping after this update or evaluation\n"
        os.kill(os.getpid(), signal.SIGTERM)
        assert capfd.readouterr().err == ""  # once is enough
    assert Stopped("stopped", number).exit_status == status


def test_the_second_interrupt_interrupts(capfd, heard):
    with pytest.raises(KeyboardInterrupt), catch_stop_signals():
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_what_nohup_ignores_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with catch_stop_signals() as stop:
            os.kill(os.getpid(), signal.SIGHUP)
            assert not stop
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_afterwards_a_signal_does_what_it_did_before(heard):
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)]
    with catch_stop_signals():
        os.kill(os.getpid(), signal.SIGHUP)
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)] == before
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
