"""The mode that learns a run's lexicon for `shortlist`: `--mode=shortlist`."""

from __future__ import annotations

from itertools import chain
from typing import Callable

from tfmann.config import HParams
from tfmann.data import (
    corpus_paths,
    input_checks,
    lexicon,
    run_vocabularies,
    shortlist_lexicon,
)
from tfmann.data.text_files import iter_parallel


def learn_shortlist(hparams: HParams, out_dir: str, log: Callable[[str], None] = print) -> None:
    """Learns which target tokens translate which source tokens of a run, from its training text.

    It has `shortlist_first` frequent tokens and `shortlist_best` translations of each token, and
    is written into the run's folder, or to `shortlist`.

    Raises:
      UsageError: a setting is missing.
      UserError: the run has no vocabularies, the text cannot be used, or the file cannot be
        written.
    """
    hparams.require_suffixes()
    hparams.require("train_prefix", "a lexicon is learnt from the training text")
    corpora = corpus_paths.require_training_text(hparams)
    paths = list(chain.from_iterable(corpora))
    output = lexicon.shortlist_path(hparams, out_dir)
    input_checks.require_output("shortlist", output, paths, out_dir)
    languages = run_vocabularies.load(hparams, out_dir)
    pairs = (
        (languages.source.encode(pair.source), languages.target.encode(pair.target))
        for sides in corpora
        for pair in iter_parallel(*sides)
    )
    entries = shortlist_lexicon.learn(
        pairs, languages, hparams.shortlist_first, hparams.shortlist_best, log
    )
    lexicon.write(output, entries)
    log(f"{output}: {len(entries)} lines, from {' and '.join(paths)}")
