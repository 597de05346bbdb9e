"""Scores of files, of any systems: ``tfmann compare``, ``tfmann aer``, ``tfmann adequacy``."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence

from tfmann.data.lexicon import iter_entries
from tfmann.data.subword import WordSegmenter
from tfmann.data.text_files import iter_documents, iter_lines
from tfmann.errors import UsageError, UserError, run_command
from tfmann.evaluation import comparison, lexical_consistency, word_recall
from tfmann.evaluation.adequacy import adequacy
from tfmann.evaluation.alignment import quality, read_pharaoh
from tfmann.evaluation.bleu import BY_CHARACTER, TOKENIZERS, check_parallel
from tfmann.evaluation.gold_alignments import units_of, words_of
from tfmann.evaluation.repetition import repetition
from tfmann.utils.arguments import ArgumentParser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command line; returns the exit status."""
    args = _parser().parse_args(argv)
    return run_command(lambda: print(args.command(args)))


def _parser() -> argparse.ArgumentParser:
    parser = ArgumentParser(prog="tfmann", description=str(__doc__))
    commands = parser.add_subparsers(required=True)

    _add_compare(commands)
    _add_aer(commands)
    _add_adequacy(commands)
    return parser


def _add_aer(commands: argparse._SubParsersAction[ArgumentParser]) -> None:
    about = (
        "Prints the alignment error rate of word links against gold links, both in Pharaoh format."
    )
    parser = commands.add_parser("aer", help="alignment error rate", description=about)
    parser.set_defaults(command=_aer)
    for name, description in (("gold", "reference links"), ("hypothesis", "the links to score")):
        parser.add_argument(
            f"--{name}", required=True, help=f"{description}: i-j, ipj or i?j where possible"
        )
        parser.add_argument(f"--one_based_{name}", action="store_true", help="words count from 1")
        parser.add_argument(
            f"--reversed_{name}", action="store_true", help="links are target-source"
        )


def _add_adequacy(commands: argparse._SubParsersAction[ArgumentParser]) -> None:
    parser = commands.add_parser(
        "adequacy",
        help="repeated n-grams; with gold links, under- and over-translated source words",
        description="Prints how many n-grams a translation repeats and its references do not. With "
        "--source and --gold it also prints the shares of source words that are left out "
        "(under-translated) or translated twice (over-translated).",
    )
    parser.set_defaults(command=_adequacy)
    parser.add_argument("--hypothesis", required=True, help="translations, tokenised")
    parser.add_argument("--reference", required=True, nargs="+", help="references, tokenised")
    parser.add_argument("--source", help="source text, tokenised")
    parser.add_argument("--gold", help="links of the source and the first reference, i-j from 0")
    parser.add_argument("--alignment", help="links of the source and the translations, if known")


def _add_compare(commands: argparse._SubParsersAction[ArgumentParser]) -> None:
    parser = commands.add_parser(
        "compare",
        help="BLEU, chrF and TER of two or more systems, significance, BLEU by length",
        description="Compares translations by two or more systems on one test set: BLEU, chrF and "
        "TER, the paired bootstrap and the sign test against the first system, BLEU by length.",
    )
    parser.set_defaults(command=_compare)
    parser.add_argument(
        "--system",
        required=True,
        nargs="+",
        help="translations by each system; the first is the baseline",
    )
    parser.add_argument("--reference", required=True, nargs="+", help="references")
    parser.add_argument(
        "--source", help="source text: lengths are of it, not of the first reference"
    )
    parser.add_argument(
        "--lengths",
        default=",".join(map(str, comparison.LIMITS)),
        help="greatest length of each class, in words, or in characters of the reference with "
        f"--tokenize={' or '.join(BY_CHARACTER)} (default: %(default)s)",
    )
    parser.add_argument(
        "--tokenize",
        default="none",
        choices=TOKENIZERS,
        help="sacreBLEU tokeniser: none for tokenised text, 13a for detokenised (default: none)",
    )
    parser.add_argument("--lowercase", action="store_true", help="ignore case")
    parser.add_argument(
        "--training",
        metavar="FILE",
        help="target side of the training text: also print each system's recall of the words of "
        "the first reference, by their frequency in this text",
    )
    parser.add_argument(
        "--documents",
        metavar="FILE",
        help="document number of each line: also print lexical consistency, how often a repeated "
        "word of a document is translated as before; needs --source and --lexicon",
    )
    parser.add_argument(
        "--lexicon",
        metavar="FILE",
        help="translations of source words for --documents, as `tfmann shortlist` learns them",
    )


def _compare(args: argparse.Namespace) -> str:
    if len(args.system) < 2:
        raise UsageError("--system: expected two or more files, the baseline first")
    if bool(args.documents) != bool(args.lexicon) or (args.documents and not args.source):
        raise UsageError(
            "--documents needs --source and --lexicon, and --lexicon needs --documents"
        )
    limits = _limits(args.lengths)
    paths = [*args.system, *args.reference, *filter(None, [args.source])]
    texts = {path: [_fold(line, args) for line in iter_lines(path)] for path in paths}
    check_parallel([(path, texts[path]) for path in paths])
    systems = [comparison.System(path, texts[path]) for path in args.system]
    references = [texts[path] for path in args.reference]
    by_character = not args.source and args.tokenize in BY_CHARACTER
    measured = texts[args.source or args.reference[0]]
    lengths = list(map(len, units_of(measured, by_character)))
    options = {"tokenize": args.tokenize, "lowercase": args.lowercase}
    report = comparison.report(
        comparison.compare(systems, references, **options),
        comparison.by_length(systems, references, lengths, limits, **options),
        f"{'characters' if by_character else 'words'} of the "
        f"{'source' if args.source else 'first reference'}",
    )
    parts = [report]
    if args.training:
        parts.append(_recall(systems, references[0], args))
    if args.documents:
        reference = comparison.System("the first reference", references[0])
        parts.append(_consistency([*systems, reference], texts[args.source], args))
    return "\n\n".join(parts)


def _fold(line: str, args: argparse.Namespace) -> str:
    """Returns a line of a text, or of a lexicon's words, without case if case is ignored."""
    return line.lower() if args.lowercase else line


def _recall(
    systems: Sequence[comparison.System], reference: Sequence[str], args: argparse.Namespace
) -> str:
    """Returns the table of recall by frequency in the training text."""
    segment = WordSegmenter().segment
    occurrences = Counter(
        word for line in iter_lines(args.training) for word in segment(_fold(line, args))
    )
    return word_recall.report(systems, word_recall.by_frequency(systems, reference, occurrences))


def _consistency(
    systems: Sequence[comparison.System], source: Sequence[str], args: argparse.Namespace
) -> str:
    """Returns the table of lexical consistency of systems, the last of which is the reference."""
    documents = list(iter_documents(args.documents))
    check_parallel([(args.source, source), (args.documents, documents)])
    lexicon = lexical_consistency.translations(
        entry._replace(source=_fold(entry.source, args), target=_fold(entry.target, args))
        for entry in iter_entries(args.lexicon)
    )
    sources = words_of(source)
    measured = [
        lexical_consistency.measure(sources, words_of(system.lines), documents, lexicon)
        for system in systems
    ]
    reference = measured[-1]
    if not reference.pairs.any() and not reference.other_pairs:
        raise UserError(
            f"{args.lexicon} translates no word that comes again in {args.source}: expected a "
            "lexicon of the words between its spaces, as `tfmann shortlist` learns of a run on "
            "words, without tokenizer"
        )
    return lexical_consistency.report(systems, measured)


def _limits(text: str) -> list[int]:
    limits = [int(limit) if limit.isdecimal() else 0 for limit in text.split(",")]
    if 0 in limits or limits != sorted(set(limits)):
        raise UsageError(
            f"--lengths={text}: expected ascending whole numbers above 0, such as 10,20,30"
        )
    return limits


def _aer(args: argparse.Namespace) -> str:
    gold = read_pharaoh(args.gold, int(args.one_based_gold), args.reversed_gold)
    hypothesis = read_pharaoh(
        args.hypothesis, int(args.one_based_hypothesis), args.reversed_hypothesis
    )
    check_parallel([(args.hypothesis, hypothesis), (args.gold, gold)])
    links = [sentence.possible for sentence in hypothesis]
    sure = [sentence.sure for sentence in gold]
    possible = [sentence.possible for sentence in gold]
    score = quality(links, sure, possible)
    return (
        f"AER {100 * score.aer:.2f}, precision {100 * score.precision:.2f}, "
        f"recall {100 * score.recall:.2f}: {len(gold)} sentences, {_total(links)} links found, "
        f"{_total(sure)} sure, {_total(possible) - _total(sure)} only possible"
    )


def _adequacy(args: argparse.Namespace) -> str:
    if bool(args.source) != bool(args.gold):
        raise UsageError("--gold needs --source, and --source needs --gold")
    if args.alignment and not args.gold:
        raise UsageError("--alignment has no effect without --source and --gold")
    paths = [args.hypothesis, *args.reference, *filter(None, [args.source])]
    texts = [words_of(iter_lines(path)) for path in paths]
    check_parallel(list(zip(paths, texts)))
    hypotheses, references = texts[0], texts[1 : 1 + len(args.reference)]
    lines = [
        f"repeated {row.order}-grams {100 * row.share:.2f} % "
        f"({row.repeated.sum()} of {row.ngrams.sum()})"
        for row in repetition(hypotheses, references)
    ]
    if args.gold:
        links = [read_pharaoh(path) for path in filter(None, [args.gold, args.alignment])]
        check_parallel([(args.hypothesis, hypotheses), *zip([args.gold, args.alignment], links)])
        gold, *traced = links
        coverage = adequacy(
            texts[-1],
            references[0],
            hypotheses,
            [sentence.sure for sentence in gold],
            [sentence.possible for sentence in traced[0]] if traced else None,
            (args.gold, args.alignment),
        )
        reworded = f"reworded {100 * coverage.reworded_share:.2f} %, " if traced else ""
        lines.append(
            f"under-translated {100 * coverage.under_share:.2f} %, {reworded}"
            f"over-translated {100 * coverage.over_share:.2f} % of {coverage.judged} source words "
            f"that have a sure link ({coverage.source_words} in all)"
        )
    return "\n".join(lines)


def _total(links: Sequence[frozenset]) -> int:
    return sum(map(len, links))


if __name__ == "__main__":
    sys.exit(main())
