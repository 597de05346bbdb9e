"""The image: what it copies is there, is not ignored, and is all that an installation needs."""

from __future__ import annotations

import importlib.metadata
import re
import shlex

from helpers.bootstrap_machine import ROOT
from helpers.lock import PYTHONS, pins, setup_list

from tfmann.cli.main import COMMANDS

TEXT = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
LINES = TEXT.splitlines()


def test_the_context_is_what_is_copied(copied_files):
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert sorted(line[1:] for line in lines if line.startswith("!")) == sorted(copied_files)
    assert all((ROOT / source).exists() for source in copied_files)


def test_what_is_copied_makes_the_package(wheel):
    assert wheel.is_file()


def test_both_stages_have_one_python_and_the_lock_is_for_it():
    images = re.findall(r"^FROM python:([\d.]+)(?:-slim)?-(\w+)", TEXT, re.MULTILINE)
    assert len(images) == len(re.findall(r"^FROM", TEXT, re.MULTILINE)) == 2
    [(version, _)] = set(images)  # the environment of the first stage runs in the second
    assert version in PYTHONS
    assert pins(version)["tensorflow-addons"] == "0.23.0"  # as results/ was recorded


def test_the_image_installs_as_make_does(checkout):
    steps = [step for line in LINES if line.startswith("RUN ") for step in line[4:].split("&&")]
    calls = [step.split("/bin/pip ", 1)[1].split() for step in steps if "/bin/pip " in step]
    checkout.add_python("python3.11", "3.11")
    assert checkout.run("make", "install").returncode == 0
    made = (checkout.checkout / "pip.calls").read_text().splitlines()
    editable = {"-e", "--config-settings", "editable_mode=compat"}  # the image has no checkout
    assert [[word for word in call if word != "--no-cache-dir"] for call in calls] == [
        [word for word in call.split()[2:] if word not in editable] for call in made
    ]


def test_the_environment_that_is_copied_is_the_one_that_runs():
    [made] = [line.split()[-1] for line in LINES if line.startswith("RUN python -m venv ")]
    assert f"COPY --from=build {made} {made}" in LINES
    assert f"ENV PATH={made}/bin:$PATH " in TEXT
    programs = re.findall(r"/\S+/bin(?=/pip )", TEXT)
    assert programs and set(programs) == {f"{made}/bin"}


def test_the_image_runs_tfmann_as_an_ordinary_user():
    assert LINES.index("USER tfmann") > max(i for i, line in enumerate(LINES) if "RUN" in line)
    assert 'ENTRYPOINT ["tfmann"]' in LINES
    scripts = setup_list("options.entry_points", "console_scripts")
    assert "tfmann" in {script.partition(" = ")[0] for script in scripts}


def test_the_examples_run_programs_of_the_image():
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    header = text[: text.index("FROM")].replace("\\\n#", " ").splitlines()
    programs = [_program(line) for line in header if "docker run" in line]
    assert [name for name, _ in programs] == ["tfmann", "tfmann", "tensorboard"]
    assert {first for name, first in programs if name == "tfmann"} <= set(COMMANDS)
    assert "tensorboard" in {
        script.name
        for script in importlib.metadata.distribution("tensorboard").entry_points
        if script.group == "console_scripts"
    }


def _program(line: str) -> tuple[str, str]:
    """Returns what a `docker run` of the image starts, and its first argument."""
    words = shlex.split(line.lstrip("#"))
    image = words.index("tfmann")
    entry_point = [word[len("--entrypoint=") :] for word in words if "--entrypoint=" in word]
    return (entry_point or ["tfmann"])[0], words[image + 1]
