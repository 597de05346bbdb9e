"""`make test-next`: what it installs for another Python or TensorFlow, and when."""

from __future__ import annotations

import pytest
from helpers.bootstrap_machine import Machine


@pytest.fixture
def later(checkout: Machine) -> Machine:
    """The checkout on a machine with a Python 3.13 and what the script needs besides."""
    checkout.add_tools("cmp", "cut")
    checkout.add_python("python3.13", "3.13")
    return checkout


def installed(later: Machine, *variables: str) -> list[str]:
    """What pip is asked for by a call of `make test-next`, which succeeds."""
    calls = later.checkout / "pip.calls"
    calls.write_text("")
    result = later.run("make", "test-next", *variables)
    assert result.returncode == 0, result.stderr
    return calls.read_text().splitlines()


def test_the_packages_of_the_lock_are_installed_once(later: Machine):
    locked = ["-m pip install --quiet --require-hashes -r requirements.lock"]
    assert installed(later) == locked
    assert installed(later) == installed(later, "TENSORFLOW=lock") == []
    with (later.checkout / "requirements.lock").open("a") as lock:
        lock.write("# another\n")
    assert installed(later) == locked
    assert installed(later) == []


def test_another_tensorflow_has_an_environment_of_its_own(later: Machine):
    installed(later)
    [call] = installed(later, "TENSORFLOW=2.20.0")
    assert "tensorflow==2.20.0 tf-keras==2.20.* tensorflow-text==2.20.* " in call
    assert "requirements.lock" not in call
    assert installed(later, "TENSORFLOW=2.20.0") == installed(later) == []
    folders = {path.name for path in (later.checkout / ".venv-next").iterdir()}
    assert folders == {"lock-3.13", "2.20.0-3.13"}
