"""`make audit`: every version of the lock is looked up, whatever Python asks."""

from __future__ import annotations

import pytest
from helpers.bootstrap_machine import Machine
from helpers.lock import ENTRIES

# A Python whose pip installs a pip-audit, which fails for the file that has {vulnerable}.
AUDITOR = """\
case "$*" in
    *version_info*) echo 3.13 ;;
    *ensurepip*) ;;
    "-m venv "*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
    "-m pip "*) cp "$0" "${{0%/python}}/pip-audit" ;;
    "-r "*) echo "file" >>audited; cat "$2" >>audited; ! grep -qx "{vulnerable}" "$2" ;;
esac
"""


@pytest.fixture
def auditor(checkout: Machine) -> Machine:
    checkout.add_tools("grep", "mktemp")
    return checkout


def test_every_locked_version_is_looked_up(auditor: Machine):
    auditor.add("python3", AUDITOR.format(vulnerable="none"))
    result = auditor.run("make", "audit")
    assert result.returncode == 0, result.stderr
    files = (auditor.checkout / "audited").read_text().split("file\n")[1:]
    pins = [line for text in files for line in text.splitlines()]
    assert sorted(pins) == sorted(entry.split()[0] for entry in ENTRIES)
    for text in files:  # pip-audit refuses two versions of a package
        names = [line.partition("==")[0] for line in text.splitlines()]
        assert len(set(names)) == len(names)


def test_a_vulnerable_version_of_one_python_fails(auditor: Machine):
    first = next(entry for entry in ENTRIES if entry.startswith("tensorflow=="))
    auditor.add("python3", AUDITOR.format(vulnerable=first.split()[0]))
    result = auditor.run("make", "audit")
    assert result.returncode == 2
