"""A table's runs beside those of other rows: is a difference in test BLEU more than luck?"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tfmann.corpus.files import iter_lines
from tfmann.evaluation.significance import compare_over_tests
from tfmann.report.records import Corpus, finished, tests, translate_more_tests


def significance(
    corpus: Corpus, out_dir: str, baselines: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Compares the translations of the tests by a run with those by others that have ended.

    Args:
      corpus: what they were trained on.
      out_dir: the run's folder.
      baselines: the others' folders, by row.

    Returns:
      for each of them, in their order: `baseline`, the `difference` in BLEU (of several tests, of
      its mean) and in percent of the baseline's (`percent`), `bootstrap_p`, `sign_p`, `wins` and
      `losses` (sentences, of the sign test), `signature` (of the bootstrap).
    """
    results = finished(out_dir)
    assert results is not None
    settings = results["hparams"]
    found = []
    for name, other in baselines.items():
        ended = finished(other)
        if ended is None:
            continue
        translate_more_tests(corpus.report, other, ended["hparams"]["cell"])
        one = compare_over_tests(
            [
                (list(iter_lines(Path(other, output))), list(iter_lines(Path(out_dir, output))),
                 [list(iter_lines(path)) for path in references])
                for output, references in tests(corpus).items()
            ],
            settings["bleu_tokenize"],
            settings["bleu_lowercase"],
        )  # fmt: skip
        difference = one.system_bleu - one.baseline_bleu
        found.append({
            "baseline": name, "difference": difference,
            "percent": 100 * difference / one.baseline_bleu if one.baseline_bleu else None,
            "bootstrap_p": one.bootstrap_p, "sign_p": one.sign_test_p,
            "wins": one.better, "losses": one.worse, "signature": one.bootstrap_signature,
        })  # fmt: skip
    return found
