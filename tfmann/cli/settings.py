"""The settings files that come with tfmann: `tfmann settings`, `tfmann settings NAME`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tfmann import config
from tfmann.errors import run_command
from tfmann.utils import resources
from tfmann.utils.arguments import ArgumentParser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command line; returns the exit status."""
    parser = ArgumentParser(
        prog="tfmann settings",
        description="Lists the settings files that --hparams_path takes by name, or shows all "
        "settings of one, with its base and the defaults. collier2019, meng2018, mino2017 and "
        "tu2018 have the papers' sizes and settings, gpu the papers' sizes with settings of our "
        "own for one GPU, cpu sizes for a CPU, tiny those for the synthetic corpus.",
    )
    parser.add_argument("name", nargs="?", help="a file, or the beginning of names")
    arguments = parser.parse_args(argv)
    return run_command(lambda: print(_describe(arguments.name or "")))


def _describe(beginning: str) -> str:
    """Returns the names that begin so, or all settings of the one file that is named in full."""
    names = [name for name in resources.settings_names() if name.startswith(beginning)]
    if names and beginning not in names:
        return "\n".join(names)
    return config.to_json(config.make({}, resources.settings_path(beginning)))


if __name__ == "__main__":
    sys.exit(main())
