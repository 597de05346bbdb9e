"""Comparison of this package with JoeyNMT, OpenNMT-tf and Marian: the same corpus and threads.

    python -m benchmarks.peers.compare --corpus_dir=DIR --what=train|decode|beam|greedy|checkpoint

Runs the systems in turn (A, B, C, A, B, C, ...), each time in a process of its own, and prints a
JSON line for each run, then the medians of the ratios ours / peer. Ours runs with products in
float32 and in bfloat16. See README.md in this folder.
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
    "beam": ("words", "words/s, beam 10"),
    "greedy": ("words", "words/s, greedy"),
}
BEAM_WIDTHS = {"decode": 10, "beam": 10, "greedy": 1}


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
    parser = make_parser(__doc__.split("\n")[0], systems.DEFAULT_SYSTEMS)
    add = parser.add_argument
    add("--what", choices=RATES, required=True, help="checkpoint: trains the peers for decode")
    add("--warmup", type=int, default=20, help="updates before the clock starts")
    add("--steps", type=int, default=120, help="updates that are measured")
    add("--test", default="test_2016_flickr", help="the test files, without suffix")
    add("--sentences", type=int, help="decode only so many test sentences; all if not given")
    add("--resident", action="store_true", help="one process a system for all turns")
    add("--ours_out_dir", type=Path, help="our trained model, for decode")
    flags = parser.parse_args(argv)
    flags.systems = choose_systems(parser, flags, systems.SYSTEMS)
    ours = set(flags.systems) & set(systems.OURS)
    luong = [system for system in flags.systems if system in ours and not systems.OURS[system][1]]
    if flags.what in BEAM_WIDTHS and luong and not flags.ours_out_dir:
        parser.error(f"--what={flags.what} needs --ours_out_dir=DIR, or --systems=joey,onmt")
    variants = set(flags.systems) & set(systems.MARIAN) - {"marian"}
    if flags.what not in BEAM_WIDTHS and variants:
        parser.error(f"--what={flags.what}: {', '.join(sorted(variants))} only decode")
    refused = {"joey", "onmt"} & set(flags.systems)
    if flags.resident and (refused or flags.what == "checkpoint"):
        parser.error("--resident is for ours and Marian, in train, decode, beam and greedy")
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
        threads=flags.threads,
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


class Runs:
    """The runs of all systems; resident processes stay until `end`."""

    def __init__(self, flags: argparse.Namespace, setup: systems.Setup):
        """Starts nothing yet."""
        self._flags, self._setup = flags, setup
        self._resident: dict[str, systems.Process] = {}

    def __call__(self, system: str) -> dict:
        """Runs one system once; a decoding's record includes the quality of its hypotheses."""
        what = self._flags.what
        record = self._record(system)
        if what in BEAM_WIDTHS:
            record.update(quality(self._flags, self._setup, system))
        elif what == "checkpoint":
            # The model moves to the folder that decoding reads only after the training has ended.
            shutil.rmtree(self._setup.model_dir(system), ignore_errors=True)
            self._training_dir(system).rename(self._setup.model_dir(system))
        elif not self._flags.resident:
            shutil.rmtree(self._training_dir(system), ignore_errors=True)
        counted, unit = RATES[what]
        value = record[counted] / record["seconds"]
        return {"system": system, "what": what, "value": value, "unit": unit, **record}

    def end(self) -> None:
        """Ends the resident processes and removes what they wrote."""
        for system, process in self._resident.items():
            process.end()
            shutil.rmtree(self._training_dir(system), ignore_errors=True)

    def _record(self, system: str) -> dict:
        flags = self._flags
        if system in self._resident:
            return self._resident[system].next_turn()
        log = self._setup.work_dir / "logs" / f"{flags.what}-{system}.log"
        if not flags.resident:
            return systems.run(self._command(system), flags.threads, log)
        command = [*self._command(system), "--resident"]
        self._resident[system] = systems.Process(command, flags.threads, log)
        return self._resident[system].record()

    def _command(self, system: str) -> list[str]:
        flags, setup = self._flags, self._setup
        if flags.what in BEAM_WIDTHS:
            return systems.decode_command(setup, system, BEAM_WIDTHS[flags.what])
        make_command = (
            systems.checkpoint_command if flags.what == "checkpoint" else systems.train_command
        )
        return make_command(setup, system, self._training_dir(system), flags.warmup, flags.steps)

    def _training_dir(self, system: str) -> Path:
        return self._setup.work_dir / f"{system}.training"


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
        "words": score.sys_len,
        "words_per_sentence": round(score.sys_len / len(hypotheses), 2),
    }


def main(argv: list[str] | None = None) -> None:
    """Runs everything in turn and prints as it goes."""
    flags = parse(argv)
    setup = prepare(flags)
    systems.keep_processors(flags.threads)
    runs = Runs(flags, setup)
    try:
        turns.take(flags, flags.what, lambda system, _: runs(system))
    finally:
        runs.end()


if __name__ == "__main__":
    main()
