"""`make` on a new machine: finding a Python and installing, once.

Everything is run with a PATH of fake commands, so that nothing real is looked for or installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from helpers.bootstrap_machine import Machine


def refusal(result: subprocess.CompletedProcess) -> str:
    """The message of a refusal: status 1, one line, nothing on standard output."""
    assert result.returncode == 1
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("tfmann: ")
    return line


NEWEST_FIRST = ("3.13", "3.12", "3.11", "3.10", "3.9")


def test_takes_the_newest_python_that_fits(machine: Machine):
    machine.add_python("python3.14", "3.14")
    machine.add_python("python3", "3.14")
    for version in reversed(NEWEST_FIRST):
        machine.add_python(f"python{version}", version)
        result = machine.find_python()
        assert (result.returncode, result.stderr) == (0, "")
        assert result.stdout == f"{machine.bin}/python{version}\n"


def test_a_newer_python3_is_taken_before_an_older_python(machine: Machine):
    machine.add_python("python3.11", "3.11")
    machine.add_python("python3", "3.12")
    assert machine.find_python().stdout == f"{machine.bin}/python3\n"


@pytest.mark.parametrize("variable", ["HOME", "PYENV_ROOT"])
def test_takes_a_python_of_pyenv_that_is_not_activated(
    machine: Machine, tmp_path: Path, variable: str
):
    root = tmp_path / "my pyenv"
    pyenv = root / ".pyenv" if variable == "HOME" else root
    machine.add("python3.13", "echo 'pyenv: python3.13: command not found' >&2; exit 127")
    machine.add_python("python3.12", "3.12")
    path = machine.add_python("its_python", "3.13")
    own = pyenv / "versions" / "3.13.0" / "bin" / "python"
    own.parent.mkdir(parents=True)
    path.rename(own)
    result = machine.find_python(**{variable: str(root)})
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == f"{own}\n"


def test_takes_a_python3_that_fits(machine: Machine):
    machine.add_python("python3", "3.11")
    assert machine.find_python().stdout == f"{machine.bin}/python3\n"


def test_passes_over_a_command_that_does_not_run(machine: Machine):
    machine.add("python3.11", "echo 'command not found' >&2; exit 127")
    machine.add_python("python3.9", "3.9")
    result = machine.find_python()
    assert result.stdout == f"{machine.bin}/python3.9\n"
    assert result.stderr == ""


@pytest.mark.parametrize("version", ["3.8", "3.14", "2.7"])
def test_refuses_other_pythons(machine: Machine, version: str):
    machine.add_python("python3", version)
    message = refusal(machine.find_python())
    assert f"python3 is Python {version}" in message
    assert "install Python 3.13" in message


def test_says_that_no_python_is_there(machine: Machine):
    assert "Python 3.9 to 3.13 is missing: install" in refusal(machine.find_python())


@pytest.mark.parametrize("processor", ["aarch64", "arm64"])
def test_refuses_an_arm_machine(tmp_path: Path, processor: str):
    machine = Machine(tmp_path, processor)
    machine.add_python("python3.11", "3.11")
    message = refusal(machine.find_python())
    assert f"this machine is {processor}" in message
    assert "tensorflow-text has wheels" in message


def test_names_the_missing_venv_package(machine: Machine):
    machine.add_python("python3.11", "3.11", has_venv=False)
    assert "apt install python3.11-venv" in refusal(machine.find_python())


def test_passes_over_a_python_without_venv(machine: Machine):
    machine.add_python("python3.11", "3.11", has_venv=False)
    machine.add_python("python3.10", "3.10")
    assert machine.find_python().stdout == f"{machine.bin}/python3.10\n"


def test_the_requested_python_is_used(machine: Machine):
    machine.add_python("python3.13", "3.13")
    machine.add_python("python3.11", "3.11")
    chosen = machine.add_python("mine", "3.10")
    assert machine.find_python(PYTHON=str(chosen)).stdout == f"{chosen}\n"
    assert machine.find_python(PYTHON="python3.11").stdout == f"{machine.bin}/python3.11\n"


def test_the_requested_python_is_not_replaced_by_another(machine: Machine):
    machine.add_python("python3.11", "3.11")
    machine.add("uv", "echo /from/uv")
    chosen = machine.add_python("mine", "3.14")
    assert f"PYTHON={chosen} is not a Python" in refusal(machine.find_python(PYTHON=str(chosen)))


def test_uv_provides_a_python_where_none_fits(machine: Machine):
    machine.add_python("python3", "3.14")
    # As uv does: finds nothing until it has installed.
    machine.add(
        "uv",
        f'if [ "$2" = install ]; then : >{machine.bin}/done; exit; fi\n'
        f"[ -f {machine.bin}/done ] && echo /from/uv",
    )
    result = machine.find_python()
    assert (result.returncode, result.stdout, result.stderr) == (0, "/from/uv\n", "")


def test_says_that_uv_failed(machine: Machine):
    machine.add("uv", "echo 'no network' >&2; exit 2")
    assert "uv python install 3.13" in refusal(machine.find_python())


def calls_of_pip(machine: Machine) -> list[str]:
    path = machine.checkout / "pip.calls"
    return path.read_text().splitlines() if path.exists() else []


@pytest.mark.parametrize("version", NEWEST_FIRST)
def test_every_python_gets_the_packages_of_the_lock(checkout: Machine, version: str):
    checkout.add_python("python3", version)
    result = checkout.run("make", "install")
    assert (result.returncode, result.stderr) == (0, "")
    assert calls_of_pip(checkout) == [
        "-m pip install --require-hashes -r requirements.lock",
        "-m pip install --no-deps --no-build-isolation --config-settings editable_mode=compat -e .",
        "-m pip check",
    ]


def test_an_environment_keeps_its_python(checkout: Machine):
    """A newer Python on the machine does not mix its packages into an older environment."""
    checkout.add_python("python3.11", "3.11")
    checkout.run("make", "install")
    calls = calls_of_pip(checkout)
    checkout.add_python("python3.13", "3.13")
    (checkout.checkout / ".venv" / "installed").unlink()
    again = checkout.run("make", "install")
    assert again.returncode == 0 and "into .venv with .venv/bin/python," in again.stdout
    assert calls_of_pip(checkout) == calls * 2


def test_another_python_than_that_of_the_environment_is_refused(checkout: Machine):
    checkout.add_python("python3.11", "3.11")
    checkout.add_python("python3.13", "3.13")
    assert checkout.run("make", "install").returncode == 0
    calls = calls_of_pip(checkout)
    for target in ("install", "reproduce-vi-en"):
        refused = checkout.run("make", target, "PYTHON=python3.11")
        assert refused.returncode == 2
        assert (
            "tfmann: .venv has Python 3.13, and PYTHON=python3.11 is Python 3.11" in refused.stderr
        )
    assert calls_of_pip(checkout) == calls
    assert checkout.run("make", "install", "PYTHON=python3.13").returncode == 0
    shutil.rmtree(checkout.checkout / ".venv")
    assert checkout.run("make", "install", "PYTHON=python3.11").returncode == 0
    assert calls_of_pip(checkout) == calls * 2


def test_installs_once(checkout: Machine):
    checkout.add_python("python3.11", "3.11")
    first = checkout.run("make", "install")
    assert (first.returncode, first.stderr) == (0, "")
    assert len(first.stdout.splitlines()) == 1
    calls = calls_of_pip(checkout)
    assert checkout.run("make", "install").returncode == 0
    assert calls_of_pip(checkout) == calls


@pytest.mark.parametrize("changed", ["setup.cfg", "requirements.lock"])
def test_installs_again_after_a_change_of(checkout: Machine, changed: str):
    checkout.add_python("python3.11", "3.11")
    checkout.run("make", "install")
    calls = calls_of_pip(checkout)
    in_a_minute = (checkout.checkout / ".venv" / "installed").stat().st_mtime + 60
    os.utime(checkout.checkout / changed, (in_a_minute, in_a_minute))
    checkout.run("make", "install")
    assert len(calls_of_pip(checkout)) == 2 * len(calls)


def test_prints_the_output_of_pip_and_tries_again(checkout: Machine):
    checkout.add_python("python3.11", "3.11", pip_works=False)
    failed = checkout.run("make", "install")
    assert failed.returncode == 2
    assert "pip said this\ntfmann: the installation failed" in failed.stderr

    checkout.add_python("python3.11", "3.11")
    shutil.rmtree(checkout.checkout / ".venv")
    assert checkout.run("make", "install").returncode == 0


@pytest.mark.parametrize("killed_at", ['mkdir -p "$3/bin" && cp', 'echo "pip said this"'])
def test_starts_from_nothing_after_a_killed_installation(checkout: Machine, killed_at: str):
    deadly = checkout.add_python("python3.11", "3.11")
    script = deadly.read_text()
    assert killed_at in script
    deadly.write_text(script.replace(killed_at, f"kill -9 $PPID; exit 1; {killed_at}"))
    assert checkout.run("make", "install").returncode == 2
    venv = checkout.checkout / ".venv"
    assert venv.exists()
    assert not (venv / "installed").exists()
    (venv / "half_copied").touch()

    checkout.add_python("python3.11", "3.11")
    assert checkout.run("make", "install").returncode == 0
    assert (venv / "installed").exists()
    assert not (venv / "half_copied").exists()


def test_does_not_disturb_an_installation_that_runs(checkout: Machine):
    checkout.add_python("python3.11", "3.11")
    venv = checkout.checkout / ".venv"
    venv.mkdir()
    (venv / "installing").write_text(f"{os.getpid()}\n")
    result = checkout.run("make", "install")
    assert result.returncode == 2
    assert f"tfmann: process {os.getpid()} is installing" in result.stderr
    assert calls_of_pip(checkout) == []
