"""The settings files that come with tfmann: `tfmann settings`, `tfmann settings NAME`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from tfmann import resources
from tfmann.corpus.files import iter_lines
from tfmann.errors import status_of


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="tfmann settings",
        description="Lists the settings files that --hparams_path takes by name, or shows one. "
        "collier2019, meng2018, mino2017 and tu2018 have the papers' sizes, cpu sizes for a CPU, "
        "tiny those for the synthetic corpus.",
        allow_abbrev=False,
    )
    parser.add_argument("name", nargs="?", help="a file, or the beginning of names")
    asked = parser.parse_args(argv)
    return status_of(lambda: print(_shown(asked.name or "")))


def _shown(name: str) -> str:
    beginning = [one for one in resources.settings_names() if one.startswith(name)]
    if beginning and name not in beginning:
        return "\n".join(beginning)
    return "\n".join(iter_lines(resources.settings_path(name)))


if __name__ == "__main__":
    sys.exit(main())
