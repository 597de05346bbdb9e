"""Comparison of this package with JoeyNMT and OpenNMT-tf: the same model, corpus and threads.

    python -m benchmarks.peers.compare --corpus_dir=DIR --what=train|decode|checkpoint

Runs the systems in turn (A, B, C, A, B, C, ...), each time in a process of its own, and prints a
JSON line for each run, then the medians of the ratios ours / peer. Ours runs twice a turn, with
products in float32 and in bfloat16. See README.md in this folder.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Iterable
from pathlib import Path

from benchmarks.peers import corpus, systems, turns

RATES = {
    "train": ("words", "target words/s"),
    "checkpoint": ("words", "target words/s"),
    "decode": ("sentences", "sentences/s"),
}


def make_parser(description: str, default_systems: Iterable[str]) -> argparse.ArgumentParser:
    """Makes the parser of the flags that to_bleu.py shares."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    add = parser.add_argument
    add("--corpus_dir", type=Path, required=True, help="has train, val and test files")
    add("--systems", default=",".join(default_systems), help="in the order of running")
    add("--pairs", type=int, default=5, help="how often all systems are run")
    add("--out", type=Path, help="file that keeps the lines; what it has is not run again")
    add("--threads", type=int, default=2)
    add("--src", default="de", help="suffix of the source files")
    add("--tgt", default="en", help="suffix of the target files")
    add("--work_dir", type=Path, default=systems.PEERS / ".work", help="vocabularies, models")
    add("--ours_hparams", type=Path, default=systems.PEERS / "ours.json")
    return parser


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    """Parses the command line."""
    parser = make_parser(__doc__.split("\n")[0], systems.SYSTEMS)
    add = parser.add_argument
    add("--what", choices=RATES, required=True, help="checkpoint: trains the peers for decode")
    add("--warmup", type=int, default=20, help="updates before the clock starts")
    add("--steps", type=int, default=120, help="updates that are measured")
    add("--test", default="test_2016_flickr", help="the test files, without suffix")
    add("--sentences", type=int, help="decode only so many test sentences; all if not given")
    add("--ours_out_dir", type=Path, help="our trained model, for decode")
    flags = parser.parse_args(argv)
    flags.systems = choose_systems(parser, flags, systems.SYSTEMS)
    ours = set(flags.systems) & set(systems.OURS)
    if flags.what == "decode" and ours and not flags.ours_out_dir:
        parser.error("--what=decode needs --ours_out_dir=DIR, or --systems=joey,onmt")
    if flags.what == "checkpoint":
        # Ours are trained with its own command line.
        flags.systems = [system for system in flags.systems if system not in ours]
        flags.pairs = 1
    return flags


def choose_systems(
    parser: argparse.ArgumentParser, flags: argparse.Namespace, available: tuple[str, ...]
) -> list[str]:
    """Returns the systems that the command line chooses."""
    names = flags.systems.split(",")
    if not set(names) <= set(available):
        parser.error(f"--systems: there are {', '.join(available)}")
    return names


def make_setup(flags: argparse.Namespace, ours_out_dir: Path | None = None) -> systems.Setup:
    """Returns all paths, and writes the vocabularies."""
    setup = systems.Setup(
        corpus_dir=flags.corpus_dir.resolve(),
        src=flags.src,
        tgt=flags.tgt,
        work_dir=flags.work_dir.resolve(),
        ours_hparams=flags.ours_hparams.resolve(),
        ours_out_dir=ours_out_dir and ours_out_dir.resolve(),
    )
    for language in (flags.src, flags.tgt):
        corpus.write_vocabularies(setup.corpus_dir / "train", language, setup.work_dir / "vocab")
    return setup


def prepare(flags: argparse.Namespace) -> systems.Setup:
    """Writes the vocabularies and the texts to translate."""
    setup = make_setup(flags, flags.ours_out_dir)
    test = corpus.read_lines(setup.corpus_dir / flags.test, flags.src)[: flags.sentences]
    corpus.write_lines(Path(f"{setup.input}.{flags.src}"), test)
    warmup = corpus.read_lines(setup.corpus_dir / "val", flags.src)[: systems.WARMUP_SENTENCES]
    corpus.write_lines(Path(f"{setup.warmup_input}.{flags.src}"), warmup)
    return setup


def measure(flags: argparse.Namespace, setup: systems.Setup, system: str) -> dict:
    """Runs one system once; a decoding's record includes the quality of its hypotheses."""
    log = setup.work_dir / "logs" / f"{flags.what}-{system}.log"
    if flags.what == "decode":
        record = systems.run(systems.decode_command(setup, system), flags.threads, log)
        record.update(quality(flags, setup, system))
    else:
        model_dir = setup.work_dir / f"{system}.training"
        make_command = (
            systems.checkpoint_command if flags.what == "checkpoint" else systems.train_command
        )
        command = make_command(setup, system, model_dir, flags.warmup, flags.steps)
        record = systems.run(command, flags.threads, log)
        if flags.what == "checkpoint":
            # The model moves to the folder that decoding reads only after the training has ended.
            shutil.rmtree(setup.model_dir(system), ignore_errors=True)
            model_dir.rename(setup.model_dir(system))
        else:
            shutil.rmtree(model_dir, ignore_errors=True)
    counted, unit = RATES[flags.what]
    value = record[counted] / record["seconds"]
    return {"system": system, "what": flags.what, "value": value, "unit": unit, **record}


def quality(flags: argparse.Namespace, setup: systems.Setup, system: str) -> dict:
    """Scores a system's hypotheses: BLEU on the words as they are, lower-cased, and length."""
    from sacrebleu.metrics import BLEU

    hypotheses = setup.output(system).read_text("utf-8").split("\n")[:-1]
    references = corpus.read_lines(setup.corpus_dir / flags.test, flags.tgt)[: flags.sentences]
    if len(hypotheses) != len(references):
        counts = f"{len(hypotheses)} lines for {len(references)} sentences"
        raise SystemExit(f"compare: {system} wrote {counts} to {setup.output(system)}")
    bleu = BLEU(tokenize="none", lowercase=True, force=True)
    score = bleu.corpus_score(hypotheses, [references])
    return {
        "bleu": round(score.score, 2),
        "signature": str(bleu.get_signature()),
        "words_per_sentence": round(score.sys_len / len(hypotheses), 2),
    }


def main(argv: list[str] | None = None) -> None:
    """Runs everything in turn and prints as it goes."""
    flags = parse(argv)
    setup = prepare(flags)
    systems.keep_processors(flags.threads)
    turns.take(flags, flags.what, lambda system, _: measure(flags, setup, system))


if __name__ == "__main__":
    main()
