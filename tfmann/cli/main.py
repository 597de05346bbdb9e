"""The command `tfmann`: `tfmann COMMAND ...`, or `python -m tfmann COMMAND ...`.

A command is the `main` of a module that is imported only for that command, so that help and version
start fast.
"""

from __future__ import annotations

import difflib
import importlib
import re
import sys
from collections.abc import Sequence
from typing import NamedTuple

from tfmann import __version__
from tfmann.errors import UsageError, run_command


class Command(NamedTuple):
    """A command, the first word after `tfmann`."""

    help: str
    module: str  # its `main` takes the arguments and returns the exit status
    first: tuple[str, ...] = ()  # arguments before those of the command line


GROUPS: dict[str, dict[str, Command]] = {
    "getting started": {
        "demo": Command("train, translate and score on an invented language: minutes", "cli.demo"),
        "play": Command("watch a model translate, on a page", "cli.play"),
        "settings": Command("list the settings that come with tfmann, or show one", "cli.settings"),
    },
    "a model of your own": {
        "prepare": Command("clean text, learn subwords and vocabularies", "cli.prepare"),
        "train": Command("train and evaluate, or continue a run", "nmt", ("--mode=train",)),
        "translate": Command("translate a file, a pipe, or at a prompt", "cli.translate"),
        "evaluate": Command("BLEU, chrF and TER of dev and test", "nmt", ("--mode=eval",)),
        "score": Command("log-probabilities of given translations", "nmt", ("--mode=score",)),
        "align": Command("word alignments of given translations", "nmt", ("--mode=align",)),
        "tune": Command("choose the length penalty on dev", "nmt", ("--mode=tune",)),
        "lexicon": Command("learn a lexicon for --replace_unk", "nmt", ("--mode=lexicon",)),
        "shortlist": Command("learn a lexicon for --shortlist", "nmt", ("--mode=shortlist",)),
        "memorize": Command("learn word translations for --lexical_memory", "cli.memorize"),
        "datastore": Command("prepare a translation memory", "cli.datastore"),
        "serve": Command("answer requests over HTTP", "cli.serve"),
        "export": Command("write a SavedModel, for TensorFlow Serving", "nmt", ("--mode=export",)),
        "inspect": Command("statistics of a memory at work, over a test set", "cli.inspection"),
        "report": Command("figures of a memory at work; all results as a page", "cli.report"),
    },
    "files of translations and alignments": {
        "compare": Command(
            "two or more systems, of any origin, on one test", "cli.scores", ("compare",)
        ),
        "aer": Command("alignment error rate", "cli.scores", ("aer",)),
        "adequacy": Command(
            "words that are repeated, left out, or translated twice", "cli.scores", ("adequacy",)
        ),
    },
    "the papers": {
        "reproduce": Command("rebuild a table: train its rows, print them", "papers.reproduce"),
        "fetch": Command("download and check a corpus", "datasets.catalog", ("fetch",)),
        "synthetic": Command("write the synthetic corpus", "cli.synthetic"),
    },
}  # fmt: skip
COMMANDS = {name: command for group in GROUPS.values() for name, command in group.items()}

# The names of commands in other programs, and of the modes of tfmann.nmt.
_OTHER_NAMES = {"infer": "translate", "decode": "translate", "eval": "evaluate", "fit": "train"}

_EXAMPLES = """\
examples:
  tfmann demo
  tfmann prepare --src=de --tgt=en --train_prefix=DIR/train --dev_prefix=DIR/dev \\
      --output=corpora/mine
  tfmann train --data=corpora/mine --hparams_path=cpu/multi30k/de_en_luong.json \\
      --nobleu_lowercase --out_dir=runs/mine
  tfmann translate --model=runs/mine --input=FILE --output=FILE
  echo "ein mann schläft ." | tfmann translate --model=runs/mine
  tfmann serve --model=runs/mine
  tfmann reproduce vi-en --scale=cpu"""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command line; returns the exit status."""
    return run_command(lambda: _run(list(sys.argv[1:] if argv is None else argv)))


def _run(argv: list[str]) -> int:
    if argv[:1] == ["help"] and argv[1:] != ["help"]:
        if len(argv) > 2:
            raise UsageError(f"`tfmann help` takes one command: leave out {argv[2]!r}")
        argv = [*argv[1:2], "--help"]
    if not argv or argv[0] in ("-h", "--help", "-help", "help"):
        print(usage())
        return 0
    name, *arguments = argv
    if name in ("--version", "-V"):
        print(f"tfmann {__version__}")
        return 0
    if name == "version":
        if arguments not in ([], ["-h"], ["--help"]):
            raise UsageError(f"`tfmann version` takes no arguments: leave out {arguments[0]!r}")
        print(_versions())
        return 0
    command = COMMANDS.get(name)
    if command is None:
        raise UsageError(_unknown(name))
    if command.module == "nmt" and any(re.match("--?mode(=|$)", word) for word in arguments):
        raise UsageError(f"`tfmann {name}` is {command.first[0]}: leave out --mode")
    run = importlib.import_module(f"tfmann.{command.module}").main
    return run([*command.first, *arguments])


def usage() -> str:
    """Returns the help that `tfmann -h` prints."""
    lines = [
        f"tfmann {__version__}: memory-augmented neural machine translation",
        "",
        "usage: tfmann COMMAND ...",
    ]
    other_commands = {
        "version": "tfmann's version and those of the packages it works with",
        "help": "this list; `tfmann help COMMAND` or `tfmann COMMAND -h`: help on one command",
    }
    groups = {title: {n: c.help for n, c in group.items()} for title, group in GROUPS.items()}
    for title, group in {**groups, "other": other_commands}.items():
        lines += ["", f"{title}:", *(f"  {name:<11}{text}" for name, text in group.items())]
    return "\n".join([*lines, "", _EXAMPLES])


def _unknown(name: str) -> str:
    if name.startswith("-"):
        return f"expected a command before {name}: `tfmann COMMAND ...`; `tfmann -h` lists them"
    names = [*COMMANDS, "version", "help"]
    near = difflib.get_close_matches(name.lower(), [*names, *_OTHER_NAMES], n=1)
    hint = f"did you mean {_OTHER_NAMES.get(near[0], near[0])!r}? " if near else ""
    return f"there is no command {name!r}; {hint}`tfmann -h` lists them"


def _versions() -> str:
    from tfmann.utils.provenance import provenance  # reads what is installed; imports none of it

    record = provenance()
    versions = "\n".join(f"  {name} {version}" for name, version in record["versions"].items())
    return f"tfmann {__version__} ({record['revision']})\n{versions}"
