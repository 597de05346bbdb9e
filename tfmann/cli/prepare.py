"""The command that makes a user's own text ready for training: ``tfmann prepare``."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence

from tfmann.data.input_checks import refuse_empty
from tfmann.datasets.cleaning import CleaningRules
from tfmann.datasets.raw_corpus import Recipe, prepare_corpus, summary
from tfmann.errors import UsageError, interruptible, run_command
from tfmann.utils.arguments import ArgumentParser

_EXAMPLES = """\
examples:
  tfmann prepare --src=de --tgt=en --train_prefix=raw/train --dev_prefix=raw/val \\
      --output=corpora/de_en
  tfmann prepare --src=de --tgt=en --train_prefix=raw/train --dev_prefix=raw/val \\
      --output=corpora/de_en_bpe --subwords=bpe --max_length=80 --max_ratio=4 --drop_duplicates
  tfmann train --data=corpora/de_en --hparams_path=cpu/multi30k/de_en_luong.json \\
      --nobleu_lowercase --out_dir=runs/mine"""
_SETTINGS = "cpu/multi30k/de_en_luong.json"  # a size for one or two cores


def main(argv: Sequence[str] | None = None) -> int:
    """Prepares a corpus as the arguments ask, and returns the exit status."""
    arguments = _parser().parse_args(argv)
    return run_command(lambda: _prepare(arguments))


def _parser() -> argparse.ArgumentParser:
    parser = ArgumentParser(
        prog="tfmann prepare",
        description="Cleans raw parallel text, learns subwords and vocabularies, and reports sizes "
        "and unknown tokens. `tfmann train --data=FOLDER` takes the result.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    files = parser.add_argument_group(
        "files: PREFIX.SRC, PREFIX.TGT and perhaps PREFIX.docs, plain or .gz"
    )
    files.add_argument("--src", required=True, help="source suffix and language code, such as de")
    files.add_argument("--tgt", required=True, help="target suffix and language code, such as en")
    files.add_argument(
        "--train_prefix", required=True, help="text to clean, to learn from and to train on"
    )
    files.add_argument("--dev_prefix", help="text to choose the best checkpoint on, never cleaned")
    files.add_argument("--test_prefix", help="text to score at the end, never cleaned")
    files.add_argument("--output", required=True, help="folder to write")
    tokens = parser.add_argument_group("tokens")
    tokens.add_argument(
        "--subwords",
        choices=("spm", "bpe", "words"),
        default="spm",
        help="SentencePiece on raw text, byte pair encoding, or whole words (%(default)s)",
    )
    tokens.add_argument(
        "--tokenizer",
        choices=("moses", "none"),
        help="of bpe and words: moses for raw text, none for tokenised text (moses)",
    )
    tokens.add_argument(
        "--vocab_size",
        type=int,
        default=8000,
        help="pieces of spm, merges of bpe, or words, of which 0 takes all (%(default)s)",
    )
    tokens.add_argument(
        "--min_frequency",
        type=int,
        default=1,
        help="of bpe and words: rarer tokens become <unk> (%(default)s)",
    )
    cleaning = parser.add_argument_group("cleaning; pairs with an empty side are always removed")
    cleaning.add_argument("--max_length", type=int, default=0, help="words of a side; 0: no limit")
    cleaning.add_argument(
        "--max_ratio", type=float, default=0.0, help="longer side over shorter; 0: no limit"
    )
    cleaning.add_argument("--drop_duplicates", action="store_true", help="remove repeated pairs")
    cleaning.add_argument("--drop_copies", action="store_true", help="pairs whose sides are equal")
    return parser


def _prepare(arguments: argparse.Namespace) -> None:
    for name in ("dev_prefix", "test_prefix", "output"):
        refuse_empty(getattr(arguments, name), name)
    recipe = _recipe(arguments)
    prefixes = {
        split: getattr(arguments, f"{split}_prefix")
        for split in ("train", "dev", "test")
        if getattr(arguments, f"{split}_prefix")
    }
    with interruptible():
        record = prepare_corpus(recipe, prefixes, arguments.output, _print)
    for line in summary(record):
        _print(line)
    folder = shlex.quote(arguments.output)
    dev = "" if arguments.dev_prefix else "--dev_prefix=PREFIX "
    _print(
        f"ready: tfmann train --data={folder} --hparams_path={_SETTINGS} --nobleu_lowercase "
        f"{dev}--out_dir=runs/mine\n"
        "       (`tfmann settings` lists other files of settings)"
    )


def _recipe(arguments: argparse.Namespace) -> Recipe:
    if not arguments.train_prefix:
        raise UsageError("--train_prefix is empty: expected the PREFIX of the training text")
    if arguments.src == arguments.tgt:
        raise UsageError(f"--src and --tgt are both {arguments.src!r}: they are different files")
    for name in ("src", "tgt"):
        if getattr(arguments, name) == "docs":
            raise UsageError(f"--{name}=docs: PREFIX.docs has the numbers of documents")
    for name, least in (("vocab_size", 0), ("min_frequency", 1), ("max_length", 0)):
        if getattr(arguments, name) < least:
            raise UsageError(f"--{name}={getattr(arguments, name)}: expected at least {least}")
    if arguments.max_ratio and not arguments.max_ratio >= 1:
        raise UsageError(f"--max_ratio={arguments.max_ratio}: expected at least 1, or 0 for none")
    if not arguments.vocab_size and arguments.subwords != "words":
        raise UsageError(f"--subwords={arguments.subwords} needs a --vocab_size above 0")
    if arguments.subwords == "spm" and arguments.tokenizer == "moses":
        raise UsageError("--subwords=spm works on raw text: leave out --tokenizer=moses")
    if arguments.subwords == "spm" and arguments.min_frequency > 1:
        raise UsageError(
            f"--min_frequency={arguments.min_frequency} has no effect with --subwords=spm, which "
            "has pieces for rare words: leave it out, or give --subwords=bpe or words"
        )
    default = "none" if arguments.subwords == "spm" else "moses"
    tokenizer = arguments.tokenizer or default
    return Recipe(
        source=arguments.src,
        target=arguments.tgt,
        subwords=arguments.subwords,
        tokenizer="" if tokenizer == "none" else tokenizer,
        vocab_size=arguments.vocab_size,
        min_frequency=arguments.min_frequency,
        cleaning=CleaningRules(
            max_length=arguments.max_length,
            max_ratio=arguments.max_ratio,
            drop_duplicates=arguments.drop_duplicates,
            drop_copies=arguments.drop_copies,
        ),
    )


def _print(message: str) -> None:
    print(message, flush=True)


if __name__ == "__main__":
    sys.exit(main())
