"""Commands in processes of their own, which free their memory at the end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from tfmann.errors import UserError
from tfmann.training.stop_signals import handle_stop_signals
from tfmann.utils.run_folder import is_of_last_training


def run_module(module: str, flags: Mapping[str, str], out_dir: str) -> None:
    """Runs a module's command on a run's folder, and ends as it ends if a signal stops it.

    Args:
      module: of Python, such as `tfmann.nmt`.
      flags: by their names, without that of the folder.
      out_dir: the folder.

    Raises:
      UserError: the command failed.
    """
    status = _run_module(module, flags, out_dir)
    if status:
        raise UserError(f"the run in {out_dir} stopped with status {status}")


def decode(mode: str, out_dir: str, flags: Mapping[str, str], text: str) -> None:
    """Runs `--mode` with the best checkpoint of a run; an error names what `text` it decodes.

    Raises:
      UserError: the model could not be used.
    """
    if _run_module("tfmann.nmt", {"mode": mode, **flags}, out_dir):
        raise UserError(f"the model in {out_dir} could not decode {text}")


def translate(output: str, out_dir: str, flags: Mapping[str, str], text: str) -> None:
    """Decodes into the file `output`, unless that was done after the run's last training."""
    if not is_of_last_training(output, out_dir):
        decode("infer", out_dir, {**flags, "inference_output_file": f"{output}.new"}, text)
        os.replace(f"{output}.new", output)


def _run_module(module: str, flags: Mapping[str, str], out_dir: str) -> int:
    command = [sys.executable, "-m", module, f"--out_dir={out_dir}"]
    return run_to_end([*command, *(f"--{key}={value}" for key, value in flags.items())])


def run_to_end(command: Sequence[str]) -> int:
    """Runs a command and returns its exit status; ends as it ends if a signal stops it."""
    status, number = _wait_for(command)
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    if number:
        sys.exit(128 + number)
    return status


def _wait_for(command: Sequence[str]) -> tuple[int, int]:
    """Runs a command to its end; a signal is passed on to it, and it may save first.

    Returns:
      its exit status; the first signal that came, or 0.
    """
    received: list[int] = []
    child: subprocess.Popen | None = None

    def pass_on(number: int, frame: Any) -> None:
        del frame
        received.append(number)
        if child:
            child.send_signal(signal.SIGTERM)  # `kill` reaches only us, a terminal also the child

    with handle_stop_signals(pass_on):
        child = subprocess.Popen(command)
        if received:
            child.terminate()
        status = child.wait()
    return status, received[0] if received else 0
