"""The lock: one version of each package for each Python, with the hashes of its files."""

from __future__ import annotations

import re

import pytest
from helpers.lock import ENTRIES, PYTHONS, applies, pins, setup_list
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def test_every_locked_version_has_hashes():
    assert len(ENTRIES) > 100
    for entry in ENTRIES:
        lines = [line for line in entry.splitlines()[1:] if not line.startswith("#")]
        hashes = [re.fullmatch(r"    --hash=sha256:[0-9a-f]{64}( \\)?", line) for line in lines]
        assert hashes and all(hashes)


@pytest.mark.parametrize("python", PYTHONS)
def test_the_lock_has_the_requirements_of_every_python(python: str):
    lines = setup_list("options", "install_requires") + setup_list("options.extras_require", "test")
    wanted = [Requirement(line) for line in lines]
    wanted = [requirement for requirement in wanted if applies(requirement, python)]
    assert len(wanted) > 10
    locked = pins(python)
    for requirement in wanted:
        assert locked[canonicalize_name(requirement.name)] in requirement.specifier


def test_python_3_11_has_the_versions_under_which_the_results_were_recorded():
    locked = pins("3.11")
    assert (locked["tensorflow"], locked["tensorflow-addons"]) == ("2.15.1", "0.23.0")


def test_all_pythons_format_alike():
    assert len({pins(python)["ruff"] for python in PYTHONS}) == 1
