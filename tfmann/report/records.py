"""Runs as a table keeps them: what was trained and measured, a JSON line for each row and seed."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from tfmann import hparams as hparams_module
from tfmann.corpus import datasets, tokenise
from tfmann.corpus.files import iter_lines, write_lines
from tfmann.corpus.inputs import reference_paths
from tfmann.errors import UserError
from tfmann.evaluation import bleu, significance
from tfmann.evaluation.gold import words_of
from tfmann.evaluation.repetition import repetition
from tfmann.folder import RESULTS
from tfmann.report import paired
from tfmann.report.table import Row


class Corpus(NamedTuple):
    """What the rows of a table are trained and measured on.

    Attributes:
      report: the corpus as it was found.
      settings: of a run: where its files are.
      preparation: how raw text was made into it; None where it is used as it is.
    """

    report: datasets.Report
    settings: dict[str, str]
    preparation: dict[str, Any] | None


def finished(out_dir: str) -> dict[str, Any] | None:
    """The results of a run that has ended; None of another."""
    try:
        return json.loads(Path(out_dir, RESULTS).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def record(
    name: str, scale: str, row: Row, seed: int, corpus: Corpus, out_dir: str
) -> dict[str, Any]:
    """A run that has ended as a row of a table.

    Scores that the run did not make itself are made now, or taken from its folder: further tests,
    detokenised text, repetition, the interval of BLEU, BLEU of resampled sentences; where there are
    gold links, alignment error and adequacy.

    Args:
      name: of the table.
      scale: at which it is rebuilt.
      row: whose run it is.
      seed: of the run.
      corpus: what it was trained on.
      out_dir: its folder.

    Raises:
      UserError: it has not ended, or its model could not be used.
    """
    results = finished(out_dir)
    if results is None:
        raise UserError(f"the run in {out_dir} has ended without results")
    report = corpus.report
    kept = _without_paths(name, scale, row, seed, report, results)
    if report.manifest.more_tests:
        kept["more_tests"] = _more_tests(corpus, out_dir, results["hparams"])
    if corpus.preparation is not None:
        kept["preparation"] = corpus.preparation
        kept["detokenised"] = _detokenised_scores(report, out_dir)
    if report.manifest.alignments:
        kept.update(_by_gold_links(report, out_dir, results["hparams"]["cell"]))
    kept["repetition"] = _repetition(corpus, out_dir)
    if not report.manifest.more_tests:  # the interval is not that of a mean over tests
        kept["interval"] = _interval(corpus, out_dir, results["hparams"])
    dev = {"output_dev": _references(corpus, "dev")}
    kept["resampled"] = {
        split: _resampled(outputs, out_dir, results["hparams"])
        for split, outputs in (("dev", dev), ("test", tests(corpus)))
    }
    return kept


def keep(records: list[dict[str, Any]], path: Path) -> None:
    """Puts rows into a JSON-lines file, in the place of earlier ones of the same row and seed."""
    rows = {}
    if path.exists():
        for line in iter_lines(path):
            one = json.loads(line)
            rows[one["row"], one.get("seed", 1)] = one
    rows.update({(one["row"], one["seed"]): one for one in records})
    path.parent.mkdir(parents=True, exist_ok=True)
    write_lines(path, (json.dumps(one, ensure_ascii=False) for one in rows.values()))


def _without_paths(
    name: str, scale: str, row: Row, seed: int, report: datasets.Report, results: dict[str, Any]
) -> dict[str, Any]:
    """Results with their settings, but for this machine's paths."""
    kinds = {key: field.kind for key, field in hparams_module.FIELDS.items()}
    settings = {
        key: value
        for key, value in results["hparams"].items()
        if not (kinds.get(key) == "data" and key.endswith(("_prefix", "_model")))
        and key not in ("init_checkpoint", "lexicon_file")
    }
    pairs = {split: one.pairs for split, one in report.splits.items()}
    variants = {split: one.variant for split, one in report.splits.items() if one.variant}
    kept = {key: value for key, value in results.items() if key != "hparams"}
    return {
        "table": name, "scale": scale, "row": row.name, "seed": seed, "pairs": pairs,
        "variants": variants, **({"start": row.start} if row.start else {}), **kept,
        "hparams": settings,
    }  # fmt: skip


def _evaluated(out_dir: str, name: str, flags: dict[str, str]) -> dict[str, Any]:
    """What `--mode=eval` says of the best checkpoint, asked once, in a process of its own."""
    kept = Path(out_dir, f"scores_{name}.json")
    if not kept.exists():
        command = [
            sys.executable, "-m", "tfmann.nmt", "--mode=eval", f"--out_dir={out_dir}",
            *(f"--{key}={value}" for key, value in flags.items()),
            f"--inference_output_file={kept}",
        ]  # fmt: skip
        if subprocess.run(command, check=False).returncode:
            raise UserError(f"{name} could not be scored with the model in {out_dir}")
    return json.loads(kept.read_text(encoding="utf-8"))


def tests(corpus: Corpus) -> dict[str, list[str]]:
    """Files of the references of all tests, by the name of the translations in a run's folder."""
    report = corpus.report
    return {
        "output_test": _references(corpus),
        **{
            f"output_{name}": reference_paths(
                os.path.join(report.directory, f"{name}.{report.manifest.target}")
            )
            for name in report.manifest.more_tests
        },
    }


def _more_tests(corpus: Corpus, out_dir: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Scores on the manifest's further tests, whose translations are left in the run's folder."""
    scores = {}
    references = tests(corpus)
    translate_more_tests(corpus.report, out_dir, settings["cell"])
    for name in corpus.report.manifest.more_tests:
        output = f"output_{name}"
        found = bleu.evaluate_files(
            os.path.join(out_dir, output), references[output], bleu.METRICS,
            settings["bleu_tokenize"], settings["bleu_lowercase"],
        )  # fmt: skip
        scores[name] = [dataclasses.asdict(one) for one in found]
    return scores


def translate_more_tests(report: datasets.Report, out_dir: str, cell: str) -> None:
    """Translates the manifest's further tests, those that a run has not translated yet."""
    for name in report.manifest.more_tests:
        _translate(report, name, out_dir, cell)


def _translate(report: datasets.Report, name: str, out_dir: str, cell: str) -> None:
    """Translates a further test with the best checkpoint, once, in a process of its own."""
    output = os.path.join(out_dir, f"output_{name}")
    if os.path.exists(output):
        return
    prefix = os.path.join(report.directory, name)
    flags = [f"--inference_input_file={prefix}.{report.manifest.source}"]
    if hparams_module.document_memory(cell):
        flags.append(f"--inference_document_file={prefix}.docs")
    command = [sys.executable, "-m", "tfmann.nmt", "--mode=infer", f"--out_dir={out_dir}", *flags,
               f"--inference_output_file={output}.new"]  # fmt: skip
    if subprocess.run(command, check=False).returncode:
        raise UserError(f"{name} could not be translated with the model in {out_dir}")
    os.replace(f"{output}.new", output)


def gold_files(report: datasets.Report) -> dict[str, str]:
    """The files of the set that has gold links, by the flags that take them."""
    links = report.manifest.alignments
    assert links is not None
    source, target = (
        os.path.join(report.directory, *side.split("/"))
        for side in report.manifest.sides(report.manifest.splits["test"])
    )
    return {
        "gold_file": os.path.join(report.directory, *links.split("/")),
        "inference_input_file": source,
        "inference_ref_file": target,
    }


def _by_gold_links(report: datasets.Report, out_dir: str, cell: str) -> dict[str, Any]:
    """Alignment error, of a cell that has alignments, and adequacy."""
    flags = gold_files(report)
    if hparams_module.document_memory(cell):
        flags["inference_document_file"] = f"{report.splits['test'].prefix}.docs"
    scores = _evaluated(out_dir, "gold", flags)
    return {key: scores[key] for key in ("alignment", "adequacy") if key in scores}


def _interval(corpus: Corpus, out_dir: str, settings: dict[str, Any]) -> dict[str, Any]:
    """The mean of test BLEU over resamples of the sentences, and half its 95% interval (`ci`)."""
    metric = bleu.bleu_metric(settings["bleu_tokenize"], settings["bleu_lowercase"])
    references = [list(iter_lines(path)) for path in _references(corpus)]
    translations = list(iter_lines(os.path.join(out_dir, "output_test")))
    found = metric.corpus_score(translations, references, n_bootstrap=significance.RESAMPLES)
    return {"mean": found._mean, "ci": found._ci, "signature": str(metric.get_signature())}


def _resampled(
    outputs: dict[str, list[str]], out_dir: str, settings: dict[str, Any]
) -> dict[str, Any]:
    """BLEU, in hundredths, on resamples of the sentences that all runs share.

    Args:
      outputs: files of references by the name of the translations; BLEU is the mean over them.
      out_dir: where the translations are.
      settings: of the run.
    """
    found, sentences = [], 0
    for output, paths in outputs.items():
        references = [list(iter_lines(path)) for path in paths]
        translations = list(iter_lines(os.path.join(out_dir, output)))
        tokenize, lowercase = settings["bleu_tokenize"], settings["bleu_lowercase"]
        found.append(significance.resampled_bleu(translations, references, tokenize, lowercase))
        sentences += len(translations)
    return {
        "sentences": sentences, "seed": significance.RESAMPLES_SEED,
        "bleu": [round(paired.HUNDREDTHS * fmean(scores)) for scores in zip(*found)],
    }  # fmt: skip


def _references(corpus: Corpus, split: str = "test") -> list[str]:
    """Files of a split's references."""
    return reference_paths(f"{corpus.settings[f'{split}_prefix']}.{corpus.report.manifest.target}")


def _repetition(corpus: Corpus, out_dir: str) -> list[dict[str, int]]:
    """N-grams that the best checkpoint's translations of the test repeat, for n from 1."""
    found = repetition(
        words_of(iter_lines(os.path.join(out_dir, "output_test"))),
        [words_of(iter_lines(path)) for path in _references(corpus)],
    )
    return [one._asdict() for one in found]


def _detokenised_scores(report: datasets.Report, out_dir: str) -> dict[str, Any]:
    """BLEU by mteval-v13a's rules of the best translations as text, against the raw references.

    The text is left beside the tokens, in `output_dev.detok` and `output_test.detok`.
    """
    scores = {}
    for name in ("dev", "test"):
        tokens = os.path.join(out_dir, f"output_{name}")
        translations = f"{tokens}.detok"
        write_lines(translations, map(tokenise.detokenise, iter_lines(tokens)))
        references = f"{report.splits[name].prefix}.{report.manifest.target}"
        (score,) = bleu.evaluate_files(translations, [references], tokenize="13a")
        scores[name] = dataclasses.asdict(score)
    return scores
