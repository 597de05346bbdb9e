"""The command that learns a memory of word translations: ``tfmann memorize``."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from tfmann import config
from tfmann.cli.model_flags import add_model
from tfmann.config.search import MODEL_ALONE
from tfmann.data import corpus_paths, fingerprints, input_checks
from tfmann.errors import UsageError, interruptible, print_message, run_command
from tfmann.utils.arguments import ArgumentParser
from tfmann.utils.tensorflow_import import import_tensorflow

if TYPE_CHECKING:
    from tfmann.config import HParams
    from tfmann.data.batching import Batch, Corpus
    from tfmann.data.text_encoder import LanguagePair
    from tfmann.training.lexical_attention import Fit

_EXAMPLES = """\
examples:
  tfmann memorize --model=runs/mine
  tfmann translate --model=runs/mine --lexical_memory=runs/mine/lexical_memory.npz --input=FILE"""
_NAME = "lexical_memory.npz"


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command line; returns the exit status."""
    args = _parser().parse_args(argv)
    with interruptible():
        return run_command(lambda: _run(args))


def _parser() -> argparse.ArgumentParser:
    parser = ArgumentParser(
        prog="tfmann memorize",
        description="Learns from a run's training text which words translate which, and, with the "
        "model frozen, an attention over a sentence's translations (Feng et al. 2017), for "
        "--lexical_memory.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_model(parser)
    parser.add_argument("--output", help=f"file to write; default: {_NAME} in the run's folder")
    parser.add_argument("--train_prefix", help="training text (default: the run's)")
    parser.add_argument(
        "--dev_prefix", help="text to measure the attention on (default: the run's)"
    )
    for name, default, meaning in (
        ("updates", 1000, "updates of the attention"),
        ("batch_size", 80, "sentences of an update"),
        ("depth", 0, "width A of the attention; 0: num_units"),
        ("ranks", 5, "translations of a source word that a memory may have"),
    ):
        parser.add_argument(
            f"--{name}", type=int, default=default, help=f"{meaning} (default: {default})"
        )
    parser.add_argument(
        "--learning_rate", type=float, default=5e-4, help="of Adam (default: 0.0005)"
    )
    return parser


def _run(args: argparse.Namespace) -> None:
    for name, least in (("updates", 1), ("batch_size", 1), ("depth", 0), ("ranks", 1)):
        if getattr(args, name) < least:
            raise UsageError(f"--{name}={getattr(args, name)} is below the least value {least}")
    if not args.learning_rate > 0:
        raise UsageError(f"--learning_rate={args.learning_rate}: expected a number above 0")
    names = ("train_prefix", "dev_prefix")
    settings = {name: getattr(args, name) for name in names if getattr(args, name)}
    if args.train_prefix and "," not in args.train_prefix:
        settings["train_weights"] = ""  # those of the run are for its own corpora
    hparams = config.settings_of_model(args.model, settings)
    if config.cell_spec(hparams.cell).has_cache:
        raise UsageError(
            f"--lexical_memory is for models without a cache, and the cell {hparams.cell!r} has "
            "one: learn a memory for a model of another cell"
        )
    hparams.require("train_prefix", "a memory is learnt from the training text")
    text = corpus_paths.require_training_text(hparams)
    if hparams.dev_prefix:
        text = [*text, _sides(hparams, hparams.dev_prefix)]
    fingerprints.require_same_text(hparams, args.model, *(set(names) - settings.keys()))
    output = args.output or os.path.join(args.model, _NAME)
    input_checks.require_output("output", output, chain.from_iterable(text), args.model)
    import_tensorflow()
    with tempfile.TemporaryDirectory() as temporary:
        encoded = os.path.join(args.model, "encoded")  # of the text of the run alone
        folders = {name: temporary if name in settings else encoded for name in names}
        _learn(args, hparams, folders, output)


def _learn(
    args: argparse.Namespace, hparams: HParams, folders: Mapping[str, str], output: str
) -> None:
    """Learns the memory; `folders` are those of encoded text, by the setting of its prefix."""
    from tfmann import api
    from tfmann.data import lexical_memory_file, translation_table, word_links
    from tfmann.data.evaluation_batches import evaluation_batches
    from tfmann.data.lexical_memory_file import LexicalMemory
    from tfmann.decoding.forced_readouts import weights_digest
    from tfmann.training.lexical_attention import LexicalAttentionTrainer
    from tfmann.utils.provenance import provenance

    translator = api.load(args.model, args.ckpt, print_message, **MODEL_ALONE).translator
    model, languages = translator.model, translator.languages
    corpus = _corpus(hparams, hparams.train_prefixes, languages, folders["train_prefix"])
    print_message("aligning the words of the training text")
    pairs = ((corpus.source(i), corpus.target(i)) for i in range(len(corpus)))
    links = word_links.count_links(pairs, print_message)
    table = translation_table.from_links(links, args.ranks)
    print_message(f"{len(table.source):,} pairs of words")
    trainer = LexicalAttentionTrainer(
        model, table, args.depth or hparams.num_units, args.learning_rate
    )
    every = max(1, min(100, args.updates // 5))
    trainer.learn(
        islice(_batches(corpus, hparams, args.batch_size), args.updates),
        every,
        lambda number, fit: print_message(f"update {number} of {args.updates}: {_describe(fit)}"),
    )
    record: dict[str, Any] = {
        "text": languages.fingerprints,
        "model": weights_digest(model),
        "ranks": args.ranks,
        "updates": args.updates,
        "batch_size": args.batch_size,
        "learning_rate": args.learning_rate,
        **provenance(),
    }
    if hparams.dev_prefix:
        dev = _corpus(hparams, (hparams.dev_prefix,), languages, folders["dev_prefix"])
        fit = trainer.evaluate(evaluation_batches(dev, args.batch_size, hparams.append_source_eos))
        record["dev"] = fit._asdict()
        print_message(f"dev: {_describe(fit)}")
    lexical_memory_file.write(output, LexicalMemory(table, trainer.arrays(), record))
    print_message(f"{output}: for --lexical_memory")


def _sides(hparams: HParams, prefix: str) -> tuple[str, str]:
    """Returns the source and the first reference of a text; raises UserError if one is missing."""
    source, target = corpus_paths.parallel_paths(hparams, prefix)
    corpus_paths.require_file(source)
    return source, corpus_paths.reference_paths(target)[0]


def _describe(fit: Fit) -> str:
    return f"{fit.coverage:.1%} of the words in memory, mean -log beta {fit.loss:.3f}"


def _corpus(
    hparams: HParams, prefixes: Sequence[str], languages: LanguagePair, folder: str
) -> Corpus:
    """Encodes text below a run's folder, unless training has done so."""
    from tfmann.data import encoded_corpus
    from tfmann.data.joined_corpus import JoinedCorpus

    parts = [
        encoded_corpus.encode(
            languages,
            *_sides(hparams, prefix),
            corpus_paths.documents_path(prefix),
            folder,
            print_message,
        )
        for prefix in prefixes
    ]
    return JoinedCorpus(parts) if hparams.corpus_weights else parts[0]


def _batches(corpus: Corpus, hparams: HParams, size: int) -> Iterator[Batch]:
    """Yields the batches of training, of `size` sentences, without end."""
    from tfmann.data.batching import Position, TrainingBatches

    settings = hparams.replace(batch_size=size, batch_type="sentences")
    return (batch for batch, _ in TrainingBatches(corpus, settings).batches(Position()))


if __name__ == "__main__":
    sys.exit(main())
