"""The modes that use a trained model: infer, score, align, eval, tune, export."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import os
import sys
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

from tfmann import api, config
from tfmann.cli import contrasts, history, validation
from tfmann.data import file_shards, fingerprints, lexicon, memory_files
from tfmann.data.corpus_paths import EvaluationSet, evaluation_sets
from tfmann.data.text_files import (
    iter_documents,
    iter_lines,
    iter_parallel,
    stream_lines,
)
from tfmann.errors import UserError, print_message
from tfmann.evaluation import bleu, gold_alignments, length_penalty
from tfmann.evaluation.alignment import format_pharaoh
from tfmann.training import checkpoint
from tfmann.utils.files import atomic_write, readable_json
from tfmann.utils.run_folder import HPARAMS

_EVALUATED = "dev_prefix", "test_prefix"
_LONG_LINE = 500  # words; hardly one sentence


def run(mode: str, values: Any, settings: dict[str, Any]) -> None:
    """Loads the model of `--out_dir` and runs a mode.

    Args:
      mode: infer, score, align, eval, tune or export.
      values: the flags (`nmt.define_flags`).
      settings: hyper-parameters to change.
    """
    if mode == "tune":
        _tune(values, settings)
        return
    folders = validation.ensemble_folders(values.ensemble)
    model = api.load(values.out_dir, values.ckpt, print_message, ensemble=folders, **settings)
    if mode == "eval":
        _evaluate(model, values)
    elif mode == "export":
        folder = validation.export_dir(values)
        facts = model.export(folder)
        print_message(f"exported to {folder}: {', '.join(facts['signatures'])}")
    elif mode in ("score", "align"):
        with _output(values.inference_output_file) as out:
            _forced(mode, model, values, out)
    elif values.num_workers > 1:
        _infer_part(model, values)
    else:
        _infer_all(model, values)


def _infer_all(model: api.Model, values: Any) -> None:
    """Translates all lines; prints scores if there are references."""
    best: list[str] | None = [] if values.inference_ref_file else None
    with contextlib.ExitStack() as stack:
        out = stack.enter_context(_output(values.inference_output_file))
        links = None
        if values.alignment_file:
            links = stack.enter_context(atomic_write(values.alignment_file))
        _infer(model, values, out, links, best)
    if best is not None:
        for score in _scores(model, best, [values.inference_ref_file]):
            print_message(f"{score.name} {score.value:.2f} [{score.signature}]")


def _infer(
    model: api.Model,
    values: Any,
    out: BinaryIO,
    links: BinaryIO | None,
    best: list[str] | None,
    lines: range | None = None,
) -> None:
    """Writes one translation a line, or `line ||| text ||| score` for the n best.

    A sentence has from one to n of these, from best to worst: fewer if the search finds fewer, as
    with a tiny vocabulary. They begin with the number of the source line, from 0.

    Args:
      model: the model.
      values: the flags.
      out: takes the translations.
      links: takes their alignments, one line each, or None.
      best: collects the best translation of each line, or None.
      lines: the lines to translate; all if None.
    """
    h, source = model.hparams, values.inference_input_file
    documents = _documents(values.inference_document_file)
    bounds = (lines.start, lines.stop) if lines is not None else (0, None)
    required = _requirements(values, bounds, model)  # first: a history may take long
    pairs = history.read(model, values)
    documents = None if documents is None else itertools.islice(documents, *bounds)
    chunk = h.infer_batch_size if source == "-" else 0
    if source == "-" and sys.stdin.isatty():
        chunk = 1
    with_ranks = h.num_translations_per_input > 1
    text = _with_remark(itertools.islice(_input(source), *bounds), bounds[0], h.src_max_len_infer)
    number = None
    translations = model.translate(
        text,
        with_attention=links is not None,
        chunk=chunk,
        documents=documents,
        history=pairs,
        **required,
    )
    for number, n_best in enumerate(translations, start=bounds[0]):
        if best is not None:
            best.append(n_best[0].text)
        for translation in n_best:
            line = translation.text
            if with_ranks:
                line = f"{number} ||| {line} ||| {translation.score:.4f}"
            out.write(f"{line}\n".encode())
            if links is not None:
                links.write(f"{format_pharaoh(_links(translation))}\n".encode())
        if source == "-":
            out.flush()
    if number is None and lines is None:
        print_message(f"{'standard input' if source == '-' else source} is empty: no translation")


def _requirements(
    values: Any, bounds: tuple[int, int | None], model: api.Model
) -> dict[str, Iterator[Any]]:
    """Returns the prefixes and constraints of a range of lines, for `Model.translate`.

    Phrases are checked here, and so before the work, except those of a pipe.
    """
    required: dict[str, Iterator[Any]] = {}
    if values.inference_prefix_file:
        required["prefixes"] = itertools.islice(iter_lines(values.inference_prefix_file), *bounds)
    if values.inference_constraint_file:
        path = values.inference_constraint_file
        phrases = _phrases(path, bounds, model)
        is_file = os.path.isfile(path)
        required["constraints"] = iter(list(phrases)) if is_file else phrases
    return required


def _phrases(path: str, bounds: tuple[int, int | None], model: api.Model) -> Iterator[list[str]]:
    """Yields the phrases of a range of lines, checked: a message names the file and the line."""
    rows = itertools.islice(iter_lines(path), *bounds)
    for number, row in enumerate(rows, start=bounds[0] + 1):
        phrases = row.split("\t")
        model.translator.text.encode_phrases(phrases, f"{path}, line {number}")
        yield phrases


def _with_remark(lines: Iterable[str], first: int, cap: int) -> Iterator[str]:
    """Yields the lines, the first of which has the number `first`; names one that takes long."""
    is_named = 0 < cap <= _LONG_LINE
    for number, line in enumerate(lines, start=first + 1):
        if not is_named and (words := len(line.split())) > _LONG_LINE:
            print_message(
                f"line {number} has {words:,} words, which takes long: is it a single sentence? "
                "--src_max_len_infer=N truncates longer lines"
            )
            is_named = True
        yield line


def _infer_part(model: api.Model, values: Any) -> None:
    """Translates this job's share of the lines; the last job to end joins the parts of all."""
    source, documents = values.inference_input_file, values.inference_document_file
    job = file_shards.require_job(values.jobid, values.num_workers)
    looks = model.hparams.reads_documents
    lines = file_shards.shard_lines(job, source, looks, _documents(documents))
    folders = (model.checkpoint, *model.ensemble)
    weights = [checkpoint.read_state(folder)["sha256"] for folder in folders]
    settings = {**model.hparams.as_dict(), "weights": weights, "languages": model.fingerprints}
    words = lexicon.path(model.hparams, values.out_dir) if model.hparams.replace_unk else None
    memory = memory_files.paths(model.hparams)
    given = values.inference_prefix_file, values.inference_constraint_file
    files = (source, documents, *given, words, *memory, model.hparams.shortlist or None)
    fingerprint = file_shards.input_fingerprint(settings, *files)
    outputs = [path for path in (values.inference_output_file, values.alignment_file) if path]
    with file_shards.write_shards(outputs, job, fingerprint) as streams:
        _infer(model, values, streams[0], streams[1] if len(streams) > 1 else None, None, lines)
    print_message(f"job {job.jobid} of {job.num_workers}: lines {lines.start + 1} to {lines.stop}")
    conflicting = file_shards.conflicting_jobs(
        values.inference_output_file, job.num_workers, fingerprint
    )
    if conflicting:
        print_message(
            f"not joined with {', '.join(f'job {number}' for number in conflicting)}: their parts "
            "were made from another text, model or lexicon, or with other settings"
        )


def _links(translation: api.Translation) -> list[tuple[int, int]]:
    """Returns the links of a translation by its attention; a blank line has none."""
    if translation.attention is None:
        return []
    return api.links(translation.attention, translation.source_tokens, translation.tokens)


def _forced(mode: str, model: api.Model, values: Any, out: BinaryIO) -> None:
    """Writes a log-probability, or the alignment, of each given pair.

    With gold links, alignments are scored.
    """
    if values.inference_contrast_file:
        contrasts.write_scores(model, values, list(_pairs(values)), out)
        return
    documents, pairs = _documents(values.inference_document_file), _pairs(values)
    # a model that reads documents gets all pairs at once, so that no document is cut
    size = None if model.hparams.reads_documents else 64 * model.hparams.infer_batch_size
    all_alignments = []
    while block := list(itertools.islice(pairs, size)):
        if mode == "score":
            scored = model.score(block, documents)
            lines = [_score_line(forced, values.word_scores) for forced in scored]
        else:
            alignments = model.attend(block, documents)
            lines = [format_pharaoh(links) for _, links in alignments]
            if values.gold_file:
                all_alignments += alignments
        out.write("".join(f"{line}\n" for line in lines).encode())
    if values.gold_file:
        score = gold_alignments.alignment_scores(_gold(values), *zip(*all_alignments))
        print_message(
            f"AER {100 * score['aer']:.2f}, soft AER {100 * score['soft_aer']:.2f}, precision "
            f"{100 * score['precision']:.2f}, recall {100 * score['recall']:.2f}: "
            f"{score['sentences']} sentences, {score['links']} links found, {score['sure']} sure, "
            f"{score['possible'] - score['sure']} only possible"
        )


def _score_line(forced: api.Forced, with_words: bool) -> str:
    """Returns a log-probability, and after tabs the target tokens with theirs."""
    words = zip(forced.tokens, forced.word_log_probs) if with_words else ()
    return "\t".join(
        [f"{forced.log_prob:.4f}", *(f"{token} {log_prob:.4f}" for token, log_prob in words)]
    )


def _pairs(values: Any) -> Iterator[tuple[str, str]]:
    for pair in iter_parallel(values.inference_input_file, values.inference_ref_file):
        yield pair.source, pair.target


def _gold(values: Any) -> gold_alignments.GoldSet:
    return gold_alignments.read(
        values.gold_file, values.inference_input_file, values.inference_ref_file
    )


def _evaluate(model: api.Model, values: Any) -> None:
    """Translates a file with references, or the dev and test sets, and prints scores as JSON.

    With gold links, which are of the file, `alignment` and `adequacy` are among them.
    """
    traced = bool(values.gold_file) and model.has_alignments
    sets = _evaluation_sets(model, values)
    if "input" not in sets:
        for changed in fingerprints.changed_inputs(model.hparams, values.out_dir, _EVALUATED):
            print_message(f"{changed} is not what the run read under this name: it is scored as is")
    body: dict[str, Any] = {"checkpoint": model.checkpoint, "scores": {}}
    if model.ensemble:
        body["ensemble"] = model.ensemble
    for name, evaluation_set in sets.items():
        documents = _documents(evaluation_set.documents)
        n_best_lists = model.translate(_input(evaluation_set.source), traced, documents=documents)
        best = [n_best[0] for n_best in n_best_lists]
        texts = [translation.text for translation in best]
        scores = _scores(model, texts, evaluation_set.references)
        body["scores"][name] = [dataclasses.asdict(score) for score in scores]
        if values.gold_file:
            body.update(_gold_scores(model, values, best, traced))
    with _output(values.inference_output_file) as out:
        # the name of a folder may be any bytes
        out.write(f"{readable_json(body)}\n".encode("utf-8", "backslashreplace"))


def _tune(values: Any, settings: dict[str, Any]) -> None:
    """Chooses the length penalty on dev, or on a file with references, and saves it."""
    hparams = config.settings_of_model(values.out_dir, settings)
    if not values.inference_input_file and "dev_prefix" not in settings:
        fingerprints.require_same_text(hparams, values.out_dir, "dev_prefix")
    settings = {**settings, **length_penalty.search_settings(hparams)}
    model = api.load(values.out_dir, values.ckpt, print_message, **settings)
    sets = _evaluation_sets(model, values)
    evaluation_set = sets.get("input") or sets["dev"]

    def translate(model: api.Model) -> Iterator[list[api.Translation]]:
        documents = _documents(evaluation_set.documents)
        return model.translate(_input(evaluation_set.source), documents=documents)

    def search(weight: float) -> list[str]:
        searcher = model.with_search(length_penalty_weight=weight, num_translations_per_input=1)
        return [n_best[0].text for n_best in translate(searcher)]

    references = [list(iter_lines(path)) for path in evaluation_set.references]
    weights = model.hparams.length_penalty_choices or length_penalty.WEIGHTS
    chosen, points = length_penalty.choose(
        translate(model), search, references, model.hparams, weights
    )
    with _output(values.inference_output_file) as out:
        out.write("".join(f"{line}\n" for line in length_penalty.lines(chosen, points)).encode())
    saved = config.settings_of_model(values.out_dir, {"length_penalty_weight": chosen.weight})
    path = os.path.join(values.out_dir, HPARAMS)
    config.save(saved, path)
    print_message(f"length_penalty_weight={chosen.weight:g} is in {path}")


def _evaluation_sets(model: api.Model, values: Any) -> dict[str, EvaluationSet]:
    """Returns the file of the flags as `input`, or the sets of the settings."""
    if not values.inference_input_file:
        return evaluation_sets(model.hparams)
    references, documents = [values.inference_ref_file], values.inference_document_file
    return {"input": EvaluationSet(values.inference_input_file, references, documents)}


def _gold_scores(
    model: api.Model, values: Any, best: list[api.Translation], traced: bool
) -> dict[str, Any]:
    """Scores the alignments of a forced decoding, and the translations, by gold links.

    Args:
      model: the model that made the translations.
      values: the flags.
      best: the translations.
      traced: whether they have attention; without it, there are no alignments to score either.
    """
    gold, links = _gold(values), None
    scores = {}
    if traced:
        documents = _documents(values.inference_document_file)
        alignments = model.attend(_pairs(values), documents)
        scores["alignment"] = gold_alignments.alignment_scores(gold, *zip(*alignments))
        links = [_links(translation) for translation in best]
    scores["adequacy"] = gold_alignments.adequacy_scores(
        gold, [translation.text for translation in best], links
    )
    return scores


def _scores(model: api.Model, hypotheses: list[str], references: list[str]) -> list[bleu.Score]:
    return bleu.evaluate(
        hypotheses,
        [list(iter_lines(path)) for path in references],
        bleu.METRICS,
        model.hparams.bleu_tokenize,
        model.hparams.bleu_lowercase,
    )


def _input(path: str) -> Iterator[str]:
    """Yields the lines of a file, or of standard input."""
    return stream_lines(sys.stdin.buffer, "standard input") if path == "-" else iter_lines(path)


def _documents(path: str | None) -> Iterator[int] | None:
    """Returns the document ids of a file, or None without a file."""
    return None if path is None else iter_documents(path)


@contextlib.contextmanager
def _output(path: str | None) -> Iterator[BinaryIO]:
    """Opens a file that replaces `path` when complete, or standard output."""
    if path is None:
        if sys.stdout is None:
            raise UserError("standard output is closed: give --inference_output_file")
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with atomic_write(path) as stream:
        yield stream
