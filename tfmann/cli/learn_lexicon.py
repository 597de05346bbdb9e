"""The mode that learns a run's lexicon, for `replace_unk`: `--mode=lexicon`."""

from __future__ import annotations

import os
from itertools import chain
from typing import Callable

from tfmann.config import HParams
from tfmann.data import corpus_paths, ibm_model1, input_checks, lexicon
from tfmann.data.moses import make_segmenters
from tfmann.data.text_files import iter_parallel
from tfmann.errors import UserError


def learn_lexicon(hparams: HParams, out_dir: str, log: Callable[[str], None] = print) -> None:
    """Learns a lexicon from the words of a run's training text, and writes it into its folder.

    Raises:
      UsageError: a setting is missing, or the text is segmented into subwords.
      UserError: the text cannot be used, or the file cannot be written.
    """
    languages = hparams.require_suffixes()
    hparams.require("train_prefix", "a lexicon is learnt from the training text")
    lexicon.refuse_subwords(hparams)
    corpora = corpus_paths.require_training_text(hparams)
    paths = list(chain.from_iterable(corpora))
    output = lexicon.path(hparams, out_dir)
    input_checks.refuse_overwriting_text("lexicon_file", output, paths)
    input_checks.refuse_overwriting_model({"lexicon_file": output}, out_dir)
    try:
        os.makedirs(out_dir, exist_ok=True)
    except OSError as error:
        raise UserError(f"out_dir {out_dir} cannot be used: {error.strerror}") from None
    input_checks.require_folder(output, "lexicon_file")
    source, target = make_segmenters(hparams.tokenizer, "", None, languages)
    pairs = (
        (source.segment(pair.source), target.segment(pair.target))
        for sides in corpora
        for pair in iter_parallel(*sides)
    )
    entries = ibm_model1.best_translations(pairs, log)
    lexicon.write(output, entries)
    log(f"{output}: {len(entries)} words, from {' and '.join(paths)}")
