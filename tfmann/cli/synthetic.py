"""The command that writes the synthetic corpus: ``tfmann synthetic``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from tfmann.errors import interruptible, run_command
from tfmann.synthetic.style import Style
from tfmann.synthetic.writer import write_corpus
from tfmann.utils.arguments import ArgumentParser


def main(argv: Sequence[str] | None = None) -> int:
    """Writes a corpus as the arguments ask, and returns the exit status."""
    parser = ArgumentParser(
        prog="tfmann synthetic",
        description="Writes a synthetic parallel corpus with gold alignments and documents.",
    )
    parser.add_argument("--output_dir", required=True, help="folder to write to")
    parser.add_argument("--train", type=int, default=10000, help="sentence pairs (%(default)s)")
    parser.add_argument("--dev", type=int, default=500, help="sentence pairs (%(default)s)")
    parser.add_argument("--test", type=int, default=500, help="sentence pairs (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the random choices (%(default)s)")
    parser.add_argument(
        "--document_tense",
        action="store_true",
        help="tell the tense only in the first sentence of a document",
    )
    parser.add_argument(
        "--document_topic",
        action="store_true",
        help="show the topic, which ambiguous nouns depend on, in some sentences only, among them "
        "the first of each document",
    )
    parser.add_argument(
        "--long_sentences",
        action="store_true",
        help="sentences of several clauses in free order, which repeat phrases",
    )
    args = parser.parse_args(argv)
    with interruptible():
        return run_command(lambda: _write(args))


def _write(args: argparse.Namespace) -> None:
    sizes = (args.train, args.dev, args.test)
    style = Style(args.document_tense, args.document_topic, args.long_sentences)
    write_corpus(args.output_dir, *sizes, args.seed, style)
    total = " + ".join(map(str, sizes))
    print(f"{args.output_dir}: a synthetic corpus of {total} sentence pairs")


if __name__ == "__main__":
    sys.exit(main())
