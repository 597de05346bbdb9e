"""The command `tfmann`: `tfmann COMMAND ...`, or `python -m tfmann COMMAND ...`.

A command is a module's `main`, which is imported when it is asked for: help and version answer at
once.
"""

from __future__ import annotations

import difflib
import importlib
import sys
from collections.abc import Sequence
from typing import NamedTuple

from tfmann import __version__
from tfmann.errors import UsageError, status_of


class Command(NamedTuple):
    """What one word after `tfmann` does."""

    help: str
    module: str  # its `main` takes the arguments and returns the exit status
    first: tuple[str, ...] = ()  # what it is given before the arguments


GROUPS: dict[str, dict[str, Command]] = {
    "to begin with": {
        "demo": Command("train, translate and score on an invented language: minutes", "demo"),
        "settings": Command("list the settings that come with tfmann, or show a file", "settings"),
    },
    "a model of your own": {
        "train": Command("train and evaluate; the same command goes on", "nmt", ("--mode=train",)),
        "translate": Command("translate a file, a pipe, or at a prompt", "translate"),
        "evaluate": Command("BLEU, chrF and TER of dev and test", "nmt", ("--mode=eval",)),
        "score": Command("log-probabilities of given translations", "nmt", ("--mode=score",)),
        "align": Command("word alignments of given translations", "nmt", ("--mode=align",)),
        "tune": Command("choose the length penalty on dev", "nmt", ("--mode=tune",)),
        "lexicon": Command("learn what --replace_unk needs", "nmt", ("--mode=lexicon",)),
        "export": Command("write a SavedModel, to serve it", "nmt", ("--mode=export",)),
        "report": Command("figures of a memory at work; all results as a page", "report.__main__"),
    },
    "files of translations and alignments": {
        "compare": Command(
            "two or more systems, anybody's, on one test", "evaluation.__main__", ("compare",)
        ),
        "aer": Command("alignment error rate", "evaluation.__main__", ("aer",)),
        "adequacy": Command(
            "what is repeated, left out, said too often", "evaluation.__main__", ("adequacy",)
        ),
    },
    "the papers": {
        "reproduce": Command("rebuild a table: train its rows, print them", "reproduce"),
        "fetch": Command("download and check a corpus", "corpus.datasets", ("fetch",)),
        "synthetic": Command("write the synthetic corpus", "corpus.synthetic.__main__"),
    },
}  # fmt: skip
COMMANDS = {name: command for group in GROUPS.values() for name, command in group.items()}

# What other programs, and the modes of tfmann.nmt, call a command.
_OTHER_NAMES = {"infer": "translate", "decode": "translate", "eval": "evaluate", "fit": "train"}

_EXAMPLES = """\
examples:
  tfmann demo
  tfmann train --hparams_path=cpu/multi30k/de_en_luong.json --out_dir=runs/mine \\
      --src=de --tgt=en --train_prefix=DIR/train --dev_prefix=DIR/dev
  tfmann translate --model=runs/mine --input=FILE --output=FILE
  echo "ein mann schläft ." | tfmann translate --model=runs/mine
  tfmann reproduce vi-en --scale=cpu"""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command line; returns the exit status."""
    return status_of(lambda: _run(list(sys.argv[1:] if argv is None else argv)))


def _run(argv: list[str]) -> int:
    if argv[:1] == ["help"]:
        argv = [*argv[1:2], "--help"]
    if not argv or argv[0] in ("-h", "--help", "-help"):
        print(usage())
        return 0
    name, *rest = argv
    if name in ("--version", "-V"):
        print(f"tfmann {__version__}")
        return 0
    if name == "version":
        print(_versions())
        return 0
    command = COMMANDS.get(name)
    if command is None:
        raise UsageError(_unknown(name))
    if command.module == "nmt" and any(one.lstrip("-").split("=")[0] == "mode" for one in rest):
        raise UsageError(f"`tfmann {name}` is {command.first[0]}: leave out --mode")
    run = importlib.import_module(f"tfmann.{command.module}").main
    return run([*command.first, *rest])


def usage() -> str:
    """The answer to `tfmann -h`."""
    lines = [
        f"tfmann {__version__}: memory-augmented neural machine translation",
        "",
        "usage: tfmann COMMAND ...",
    ]
    others = {
        "version": "tfmann's version and those of the packages it works with",
        "help": "this; `tfmann help COMMAND` or `tfmann COMMAND -h` tells about one",
    }
    groups = {title: {n: c.help for n, c in group.items()} for title, group in GROUPS.items()}
    for title, group in {**groups, "other": others}.items():
        lines += ["", f"{title}:", *(f"  {name:<11}{text}" for name, text in group.items())]
    return "\n".join([*lines, "", _EXAMPLES])


def _unknown(name: str) -> str:
    if name.startswith("-"):
        return f"{name} stands before a command: `tfmann COMMAND ...`, and `tfmann -h` lists them"
    names = [*COMMANDS, "version", "help"]
    near = difflib.get_close_matches(name.lower(), [*names, *_OTHER_NAMES], n=1)
    hint = f"did you mean {_OTHER_NAMES.get(near[0], near[0])!r}? " if near else ""
    return f"there is no command {name!r}; {hint}`tfmann -h` lists them"


def _versions() -> str:
    from tfmann.provenance import provenance  # reads what is installed; imports none of it

    found = provenance()
    versions = "\n".join(f"  {name} {version}" for name, version in found["versions"].items())
    return f"tfmann {__version__} ({found['revision']})\n{versions}"
