"""`make` on a new machine: finding a Python and installing, once.

Everything is run with a PATH of fake commands, so that nothing real is looked for or installed.
"""

from __future__ import annotations

import os
import re
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


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def refusal(result: subprocess.CompletedProcess) -> str:
    """The message of a refusal: status 1, one line, nothing on standard output."""
    assert result.returncode == 1
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("tfmann: ")
    return line


def test_takes_the_newest_python_that_fits(machine: Machine):
    machine.add_python("python3.9", "3.9")
    machine.add_python("python3.10", "3.10")
    machine.add_python("python3", "3.12")
    result = machine.find_python()
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == f"{machine.bin}/python3.10\n"


def test_takes_a_python3_that_fits(machine: Machine):
    machine.add_python("python3", "3.11")
    assert machine.find_python().stdout == f"{machine.bin}/python3\n"


def test_passes_over_a_command_that_does_not_run(machine: Machine):
    machine.add("python3.11", "echo 'command not found' >&2; exit 127")
    machine.add_python("python3.9", "3.9")
    result = machine.find_python()
    assert result.stdout == f"{machine.bin}/python3.9\n"
    assert result.stderr == ""


@pytest.mark.parametrize("version", ["3.8", "3.12", "3.13", "2.7"])
def test_refuses_other_pythons(machine: Machine, version: str):
    machine.add_python("python3", version)
    message = refusal(machine.find_python())
    assert f"python3 is Python {version}" in message
    assert "install Python 3.11" in message


def test_says_that_no_python_is_there(machine: Machine):
    assert "Python 3.9, 3.10 or 3.11 is missing: install" in refusal(machine.find_python())


@pytest.mark.parametrize("processor", ["aarch64", "arm64"])
def test_refuses_an_arm_machine(tmp_path: Path, processor: str):
    machine = Machine(tmp_path, processor)
    machine.add_python("python3.11", "3.11")
    message = refusal(machine.find_python())
    assert f"this machine is {processor}" in message
    assert "tensorflow-addons and tensorflow-text" in message


def test_names_the_missing_venv_package(machine: Machine):
    machine.add_python("python3.11", "3.11", has_venv=False)
    assert "apt install python3.11-venv" in refusal(machine.find_python())


def test_passes_over_a_python_without_venv(machine: Machine):
    machine.add_python("python3.11", "3.11", has_venv=False)
    machine.add_python("python3.10", "3.10")
    assert machine.find_python().stdout == f"{machine.bin}/python3.10\n"


def test_the_requested_python_is_used(machine: Machine):
    machine.add_python("python3.11", "3.11")
    chosen = machine.add_python("mine", "3.10")
    assert machine.find_python(PYTHON=str(chosen)).stdout == f"{chosen}\n"


def test_the_requested_python_is_not_replaced_by_another(machine: Machine):
    machine.add_python("python3.11", "3.11")
    machine.add("uv", "echo /from/uv")
    chosen = machine.add_python("mine", "3.13")
    assert f"PYTHON={chosen} is not a Python" in refusal(machine.find_python(PYTHON=str(chosen)))


def test_uv_provides_a_python_where_none_fits(machine: Machine):
    machine.add_python("python3", "3.12")
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
    assert "uv python install 3.11" in refusal(machine.find_python())


@pytest.fixture
def checkout(machine: Machine) -> Machine:
    """The machine with what `make install` needs, and a copy of what it reads."""
    for tool in ("make", "sh", "awk", "cat", "cp", "env", "mkdir", "rm", "sleep", "tail", "touch"):
        path = shutil.which(tool)
        if path is None:
            pytest.skip(f"{tool} is not installed")
        (machine.bin / tool).symlink_to(path)
    for name in ("Makefile", "setup.cfg", "requirements.lock"):
        shutil.copy(ROOT / name, machine.checkout)
    shutil.copytree(ROOT / "scripts", machine.checkout / "scripts")
    return machine


def calls_of_pip(machine: Machine) -> list[str]:
    path = machine.checkout / "pip.calls"
    return path.read_text().splitlines() if path.exists() else []


def test_installs_once(checkout: Machine):
    checkout.add_python("python3.11", "3.11")
    first = checkout.run("make", "install")
    assert (first.returncode, first.stderr) == (0, "")
    assert len(first.stdout.splitlines()) == 1
    calls = calls_of_pip(checkout)
    assert calls[0] == "-m pip install --require-hashes -r requirements.lock"
    assert calls[1] == "-m pip install --no-deps --no-build-isolation -e ."

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
    deadly.write_text(script.replace(killed_at, f"kill -9 $PPID; {killed_at}"))
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


def test_make_says_in_one_line_what_is_missing(checkout: Machine):
    checkout.add_python("python3", "3.12")
    result = checkout.run("make", "install")
    assert result.returncode == 2
    messages = [line for line in result.stderr.splitlines() if not line.startswith("make")]
    assert len(messages) == 1
    assert "Python 3.9, 3.10 or 3.11 is missing" in messages[0]
    assert not (checkout.checkout / ".venv").exists()


def test_make_alone_lists_every_target(checkout: Machine):
    listed = checkout.run("make").stdout
    targets = "install test lint check demo reproduce-vi-en reproduce-ro-en bench clean"
    for target in targets.split():
        assert f"  make {target} " in listed


@pytest.mark.parametrize(
    ("variables", "passed"),
    [
        ([], "-m tfmann reproduce vi-en"),
        (["SCALE=cpu"], '-m tfmann reproduce vi-en --scale="cpu"'),
        (
            ["CORPUS_DIR=/a b", "OUT_DIR=/c"],
            '-m tfmann reproduce vi-en --corpus_dir="/a b" --out_dir="/c"',
        ),
        (
            ["SCALE=cpu", "SEEDS=2 3", "ROWS=luong"],
            '-m tfmann reproduce vi-en --scale="cpu" --seeds="2 3" --rows="luong"',
        ),
    ],
)
def test_reproduce_passes_on_what_was_given(checkout: Machine, variables: list[str], passed: str):
    result = checkout.run("make", "--dry-run", "reproduce-vi-en", *variables)
    assert passed in " ".join(result.stdout.replace("\\\n", " ").split())


@pytest.mark.parametrize(
    ("target", "variables", "table"),
    [
        ("reproduce-cache", [], "cache-subtitle"),
        ("reproduce-cache", ["DOMAIN=news"], "cache-news"),
        ("reproduce-synthetic-tense", ["DOMAIN=news"], "synthetic-tense"),
    ],
)
def test_a_target_has_its_table(checkout: Machine, target: str, variables: list[str], table: str):
    result = checkout.run("make", "--dry-run", target, *variables)
    assert f"-m tfmann reproduce {table} " in result.stdout


def test_a_variable_that_no_target_knows_is_refused(checkout: Machine):
    misspelled = checkout.run("make", "-n", "reproduce-vi-en", "SEED=2", "SCALE=cpu")
    assert misspelled.returncode == 2 and "there is no variable SEED:" in misspelled.stderr
    fixed = checkout.run("make", "-n", "install", "VENV=/other")  # scripts write to .venv
    assert fixed.returncode == 2 and "there is no variable VENV:" in fixed.stderr


def test_every_variable_of_the_makefile_is_known(checkout: Machine):
    """A variable that a target or its script reads can be given on make's command line."""
    text = (ROOT / "Makefile").read_text()
    scripts = [ROOT / "benchmarks/peers/run.sh", ROOT / "benchmarks/peers/setup.sh"]
    read = set(re.findall(r"\$\((?:if \$\(|or \$\()?([A-Z_]+)\)?[,)]", text))
    read |= {
        variable for path in scripts for variable in re.findall(r"\$\{([A-Z_]+):", path.read_text())
    }
    internal = {"INSTALLED", "PY", "VENV", "TABLE", "VARIABLES", "GIVEN", "UNKNOWN"}
    assert {"SCALE", "ROWS", "SEEDS", "PAIRS", "TORCH", "TENSORFLOW"} <= read
    for name in sorted(read - internal):
        result = checkout.run("make", "-n", "lint", f"{name}=x")
        assert result.returncode == 0, result.stderr
