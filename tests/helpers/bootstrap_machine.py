"""A machine of fake commands on which `make` runs."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


# Answers as a Python {version} would: its version, whether it has venv, and `-m venv` and `-m pip`
# as far as the installation looks at them. Each call of pip is noted in pip.calls.
PYTHON = """\
case "$*" in
    *version_info*) echo {version} ;;
    *ensurepip*) exit {venv_status} ;;
    "-m venv "*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
    "-m pip "*) echo "$*" >>pip.calls; echo "pip said this"; exit {pip_status} ;;
esac
"""


class Machine:
    """A folder of fake commands to use as PATH, and a checkout to run `make` in."""

    def __init__(self, folder: Path, processor: str = "x86_64"):
        self.bin = folder / "bin"
        self.checkout = folder / "checkout"
        self.bin.mkdir()
        self.checkout.mkdir()
        self.add("uname", f"echo {processor}")

    def add(self, name: str, script: str) -> Path:
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return path

    def add_tools(self, *names: str) -> None:
        """Adds commands of this machine; skips the test where one is not installed."""
        for name in names:
            path = shutil.which(name)
            if path is None:
                pytest.skip(f"{name} is not installed")
            (self.bin / name).symlink_to(path)

    def add_python(self, name: str, version: str, has_venv: bool = True, pip_works: bool = True):
        return self.add(
            name,
            PYTHON.format(
                version=version, venv_status=int(not has_venv), pip_status=int(not pip_works)
            ),
        )

    def run(self, *command: str, **variables: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            command,
            cwd=self.checkout,
            env={"PATH": str(self.bin), **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )

    def find_python(self, **variables: str) -> subprocess.CompletedProcess:
        return self.run("/bin/sh", str(ROOT / "scripts" / "find_python.sh"), **variables)
