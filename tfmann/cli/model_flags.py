"""The flags that the commands of a trained model share: its folder, and settings of its search."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Any

from tfmann import config


def add_model(parser: argparse.ArgumentParser) -> None:
    """Adds `--model`, which is also called `--out_dir`, and `--ckpt`."""
    parser.add_argument(
        "--model", "--out_dir", required=True, help="folder of the run (its --out_dir)"
    )
    parser.add_argument(
        "--ckpt", type=_given_name, help="folder of a checkpoint, rather than the best"
    )


def _given_name(name: str) -> str:
    if not name:  # the variable of a shell, which is not set
        raise argparse.ArgumentTypeError("it is empty: give a name, or leave the flag out")
    return name


def given_settings(args: argparse.Namespace, names: Iterable[str]) -> dict[str, Any]:
    """Returns those of the settings of `add_settings` that the command line has."""
    values = {name: getattr(args, name) for name in names}
    return {name: value for name, value in values.items() if value is not None}


def add_settings(parser: argparse.ArgumentParser, names: Iterable[str]) -> None:
    """Adds a flag for each of the settings `names`; one that is not given is as trained."""
    for name in names:
        field = config.FIELDS[name]
        options: dict[str, Any] = {"help": f"{field.help} (default: as trained)"}
        if field.type is bool:
            options.update(action=argparse.BooleanOptionalAction, default=None)
        else:
            options.update(type=field.type, choices=field.choices)
        parser.add_argument(f"--{name}", **options)
