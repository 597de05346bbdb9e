"""The parser of the flags of tfmann's commands."""

from __future__ import annotations

import argparse
import difflib
import itertools
import os
import re
import sys
from collections.abc import Sequence
from typing import Any

_HOME = re.compile(r"(?<=[=,])~(?=/)")


def with_home(argv: Sequence[str]) -> list[str]:
    """Returns a command line in which ~/ is the home folder: shells leave it in --flag=~/folder."""
    home = os.path.expanduser("~")
    return [_HOME.sub(lambda _: home, word) if word.startswith("-") else word for word in argv]


class ArgumentParser(argparse.ArgumentParser):
    """The parser of argparse, which takes no abbreviations here and explains a misspelt flag.

    Argparse says first that a required flag is missing, although the user has given it misspelt,
    and never which flag may be meant.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"allow_abbrev": False, **settings})

    def parse_known_args(  # type: ignore[override]  # it has overloads, which say the same
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parses flags, of which none may be unknown."""
        given = with_home(sys.argv[1:] if args is None else args)
        if self._subparsers is None:  # else they are flags of a command, which has its own parser
            self._check_names(given)
        return super().parse_known_args(given, namespace)

    def _check_names(self, given: Sequence[str]) -> None:
        known = self._option_string_actions
        flags = list(itertools.takewhile(lambda argument: argument != "--", given))
        if not {"-h", "--help"}.isdisjoint(flags):
            return
        for argument in flags:
            name = argument.partition("=")[0]
            # With a space it is text, such as speech after two dashes, and argparse's to judge.
            if name.startswith("--") and " " not in name and name not in known:
                near = difflib.get_close_matches(name, known, n=1)
                hint = f"; did you mean {near[0]}?" if near else ""
                self.error(f"unrecognized arguments: {argument}{hint}")
