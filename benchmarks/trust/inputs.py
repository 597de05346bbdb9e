"""Bad input of every kind, drawn at random.

    python -m benchmarks.trust inputs --count=2000 --seed=1 --out=results/trust.jsonl

Every kind has a strategy that draws cases, and a check that must hold for each of them, in
`bad_text` or `bad_files`. If a case fails, hypothesis makes it smaller and shows it, and the
command ends.
"""

from __future__ import annotations

import argparse
import logging
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Callable, NamedTuple

import hypothesis
from hypothesis import HealthCheck

from benchmarks import harness
from benchmarks.trust import bad_files, bad_text
from benchmarks.trust.judge import Folder, fresh_folder
from tfmann.utils.provenance import provenance


class Kind(NamedTuple):
    """A kind of input."""

    cases: Any  # a hypothesis strategy
    accepts: Callable[[Folder, Any], bool]  # checks a case; returns whether it was accepted


KINDS = {
    "text": Kind(bad_text.files, bad_text.translated),
    "pairs": Kind(bad_text.pairs, bad_text.scored),
    "documents": Kind(bad_text.with_documents, bad_text.in_documents),
    "settings": Kind(bad_files.settings, bad_files.settings_refused),
    "vocabulary": Kind(bad_files.vocabularies, bad_files.vocabulary_read),
    "bpe": Kind(bad_files.codes, bad_files.codes_read),
    "sentencepiece": Kind(bad_files.sentencepiece_models, bad_files.sentencepiece_read),
    "lexicon": Kind(bad_files.lexicons, bad_files.lexicon_read),
    "links": Kind(bad_files.links, bad_files.links_read),
    "manifest": Kind(bad_files.manifests, bad_files.manifest_read),
    "archive": Kind(bad_files.archive_files, bad_files.archive_extracted),
}


def check(kind: Kind, count: int, seed: int) -> tuple[int, int]:
    """Checks `count` cases; returns how many were accepted and how many refused.

    Raises:
      AssertionError: something did not hold.
    """
    accepted: list[bool] = []

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=count,
        database=None,
        deadline=None,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    @hypothesis.given(kind.cases)
    def check_case(case: Any) -> None:
        with fresh_folder() as folder:
            accepted.append(kind.accepts(folder, case))

    check_case()
    return sum(accepted), len(accepted) - sum(accepted)


def run(count: int, seed: int) -> Iterator[dict[str, Any]]:
    """Shares `count` cases among all kinds; yields a record for each kind."""
    for index, (name, kind) in enumerate(KINDS.items()):
        share = count // len(KINDS) + (index < count % len(KINDS))
        start = time.perf_counter()
        accepted, refused = check(kind, share, seed)
        yield {
            "benchmark": "trust/inputs",
            "kind": name,
            "seed": seed,
            "taken": accepted,
            "refused": refused,
            "failed": 0,  # the first failure ends the command
            "seconds": round(time.perf_counter() - start, 1),
            **provenance(),
        }


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.trust inputs", description=__doc__)
    parser.add_argument("--count", type=int, default=2000, help="cases in all")
    parser.add_argument("--seed", type=int, default=1, help="another seed, other cases")
    parser.add_argument("--out", type=Path, help="file to append the lines to")
    args = parser.parse_args(argv)
    logging.disable(logging.WARNING)  # some cases are accepted with a warning
    for record in run(args.count, args.seed):
        harness.write([record], args.out)
    return 0
