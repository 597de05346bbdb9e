"""What the command line does with a trained model: infer, score, align, eval, tune, export."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import os
import sys
from collections.abc import Iterator
from typing import Any, BinaryIO

from tfmann import api, usage
from tfmann import hparams as hparams_module
from tfmann.corpus import lexicon, parts
from tfmann.corpus.files import iter_documents, iter_lines, iter_parallel, replacing, stream_lines
from tfmann.corpus.inputs import EvaluationSet, evaluation_sets
from tfmann.errors import UserError
from tfmann.evaluation import bleu, gold, length_penalty
from tfmann.evaluation.alignment import format_pharaoh
from tfmann.folder import HPARAMS
from tfmann.training import checkpoint


def run(mode: str, values: Any, settings: dict[str, Any]) -> None:
    """Loads the model of `--out_dir` and does what `mode` says.

    Args:
      mode: infer, score, align, eval, tune or export.
      values: the flags (`nmt.define_flags`).
      settings: hyper-parameters to change.
    """
    if mode == "tune":
        _tune(values, settings)
        return
    model = api.load(values.out_dir, values.ckpt, _note, **settings)
    if mode == "eval":
        _evaluate(model, values)
        return
    if mode == "export":
        folder = usage.export_dir(values)
        facts = model.export(folder)
        _note(f"exported to {folder}: {', '.join(facts['signatures'])}")
        return
    if values.num_workers > 1:
        _infer_part(model, values)
        return
    with contextlib.ExitStack() as stack:
        out = stack.enter_context(_output(values.inference_output_file))
        if mode == "infer":
            links = None
            if values.alignment_file:
                links = stack.enter_context(replacing(values.alignment_file))
            best: list[str] | None = [] if values.inference_ref_file else None
            _infer(model, values, out, links, best)
        else:
            best = None
            _forced(mode, model, values, out)
    if best is not None:
        for score in _scores(model, best, [values.inference_ref_file]):
            _note(f"{score.name} {score.value:.2f} [{score.signature}]")


def _infer(
    model: api.Model,
    values: Any,
    out: BinaryIO,
    links: BinaryIO | None,
    best: list[str] | None,
    lines: range | None = None,
) -> None:
    """Writes translations: one a line, or `line ||| text ||| score` where n best are asked for.

    Of these a sentence has at least one and at most n, from best to worst: fewer where the search
    found fewer, as with a tiny vocabulary. The number of the line, from 0, says whose they are.

    Args:
      model: what translates.
      values: the flags.
      out: where translations go.
      links: where their alignments go, a line each, if they are asked for.
      best: takes the best translation of each line, if that is asked for.
      lines: which are translated; all if not given.
    """
    h, source = model.hparams, values.inference_input_file
    documents = _documents(values.inference_document_file)
    wanted = (lines.start, lines.stop) if lines is not None else (0, None)
    documents = None if documents is None else itertools.islice(documents, *wanted)
    chunk = h.infer_batch_size if source == "-" else 0
    if source == "-" and sys.stdin.isatty():
        chunk = 1
    n_best_wanted = h.num_translations_per_input > 1
    text = itertools.islice(_input(source), *wanted)
    for number, n_best in enumerate(
        model.translate(text, links is not None, chunk, documents=documents), start=wanted[0]
    ):
        if best is not None:
            best.append(n_best[0].text)
        for one in n_best:
            line = f"{number} ||| {one.text} ||| {one.score:.4f}" if n_best_wanted else one.text
            out.write(f"{line}\n".encode())
            if links is not None:
                links.write(f"{format_pharaoh(_links(one))}\n".encode())
        if source == "-":
            out.flush()


def _infer_part(model: api.Model, values: Any) -> None:
    """Translates the lines that are this job's; the last job to end joins what all have written."""
    source, documents = values.inference_input_file, values.inference_document_file
    job = parts.require(values.jobid, values.num_workers)
    looks = bool(hparams_module.document_memory(model.hparams.cell))
    lines = parts.lines_of(job, source, looks, _documents(documents))
    weights = checkpoint.read_state(model.checkpoint)["sha256"]
    asked = {**model.hparams.as_dict(), "weights": weights, "languages": model.fingerprints}
    words = lexicon.path(model.hparams, values.out_dir) if model.hparams.replace_unk else None
    whole = parts.identity(asked, source, documents, words)
    with contextlib.ExitStack() as stack:
        out = stack.enter_context(parts.writing(values.inference_output_file, job, whole))
        links = None
        if values.alignment_file:
            links = stack.enter_context(parts.writing(values.alignment_file, job, whole))
        _infer(model, values, out, links, None, lines)
    _note(f"job {job.jobid} of {job.num_workers}: lines {lines.start} to {lines.stop}")
    others = parts.strangers(values.inference_output_file, job.num_workers, whole)
    if others:
        _note(
            "of another text, model, lexicon or other settings, and not joined with it: the parts "
            f"of {', '.join(f'job {other}' for other in others)}"
        )


def _links(translation: api.Translation) -> list[tuple[int, int]]:
    """Links by the attention of a translation; a blank line has none."""
    if translation.attention is None:
        return []
    return api.links(translation.attention, translation.source_tokens, translation.tokens)


def _forced(mode: str, model: api.Model, values: Any, out: BinaryIO) -> None:
    """Writes a log-probability, or the alignment, of each given pair.

    Alignments are scored if there are gold links.
    """
    documents = _documents(values.inference_document_file)
    blocks = _blocks(_pairs(values), 64 * model.hparams.infer_batch_size)
    if hparams_module.document_memory(model.hparams.cell):
        blocks = iter([list(_pairs(values))])  # nobody is to cut a document
    attended = []
    for block in blocks:
        if mode == "score":
            lines = [f"{forced.log_prob:.4f}" for forced in model.score(block, documents)]
        else:
            found = model.attend(block, documents)
            lines = [format_pharaoh(links) for _, links in found]
            if values.gold_file:
                attended += found
        out.write("".join(f"{line}\n" for line in lines).encode())
    if values.gold_file:
        score = gold.alignment_scores(_gold(values), *zip(*attended))
        _note(
            f"AER {100 * score['aer']:.2f}, soft AER {100 * score['soft_aer']:.2f}, precision "
            f"{100 * score['precision']:.2f}, recall {100 * score['recall']:.2f}: "
            f"{score['sentences']} sentences, {score['links']} links found, {score['sure']} sure, "
            f"{score['possible'] - score['sure']} only possible"
        )


def _pairs(values: Any) -> Iterator[tuple[str, str]]:
    for pair in iter_parallel(values.inference_input_file, values.inference_ref_file):
        yield pair.source, pair.target


def _gold(values: Any) -> gold.GoldSet:
    return gold.read(values.gold_file, values.inference_input_file, values.inference_ref_file)


def _evaluate(model: api.Model, values: Any) -> None:
    """Translates a file with references, or the dev and test sets, and prints scores as JSON.

    With gold links, which are of the file, `alignment` and `adequacy` are among them.
    """
    traced = bool(values.gold_file) and hparams_module.has_alignments(model.hparams.cell)
    if values.inference_input_file:
        references = [values.inference_ref_file]
        documents = values.inference_document_file
        sets = {"input": EvaluationSet(values.inference_input_file, references, documents)}
    else:
        sets = evaluation_sets(model.hparams)
    body: dict[str, Any] = {"checkpoint": model.checkpoint, "scores": {}}
    for name, one in sets.items():
        documents = _documents(one.documents)
        found = model.translate(_input(one.source), traced, documents=documents)
        best = [n_best[0] for n_best in found]
        scores = _scores(model, [one.text for one in best], one.references)
        body["scores"][name] = [dataclasses.asdict(score) for score in scores]
        if values.gold_file:
            body.update(_gold_scores(model, values, best, traced))
    with _output(values.inference_output_file) as out:
        out.write((json.dumps(body, indent=1, ensure_ascii=False) + "\n").encode())


def _tune(values: Any, settings: dict[str, Any]) -> None:
    """Chooses the length penalty on dev, or on a file with references, and saves it."""
    hparams = usage.settings_of_model(values.out_dir, settings)
    settings = {**settings, **length_penalty.search_settings(hparams)}
    model = api.load(values.out_dir, values.ckpt, _note, **settings)
    if values.inference_input_file:
        documents = values.inference_document_file
        one = EvaluationSet(values.inference_input_file, [values.inference_ref_file], documents)
    else:
        one = evaluation_sets(model.hparams)["dev"]
    found = model.translate(_input(one.source), documents=_documents(one.documents))
    references = [list(iter_lines(path)) for path in one.references]
    weights = model.hparams.length_penalty_choices or length_penalty.WEIGHTS
    chosen, points = length_penalty.choose(found, references, model.hparams, weights)
    with _output(values.inference_output_file) as out:
        out.write("".join(f"{line}\n" for line in length_penalty.lines(chosen, points)).encode())
    saved = usage.settings_of_model(values.out_dir, {"length_penalty_weight": chosen.weight})
    place = os.path.join(values.out_dir, HPARAMS)
    hparams_module.save(saved, place)
    _note(f"length_penalty_weight={chosen.weight:g} is in {place}")


def _gold_scores(
    model: api.Model, values: Any, best: list[api.Translation], traced: bool
) -> dict[str, Any]:
    """Scores by gold links: of a forced decoding's alignments, and of the translations.

    Args:
      model: what made the translations.
      values: the flags.
      best: the translations.
      traced: whether they have attention; without it, there are no alignments to score either.
    """
    wanted, links = _gold(values), None
    scores = {}
    if traced:
        documents = _documents(values.inference_document_file)
        found = model.attend(_pairs(values), documents)
        scores["alignment"] = gold.alignment_scores(wanted, *zip(*found))
        links = [_links(one) for one in best]
    scores["adequacy"] = gold.adequacy_scores(wanted, [one.text for one in best], links)
    return scores


def _scores(
    model: api.Model, hypotheses: list[str], references: list[str]
) -> list[bleu.Score]:
    return bleu.evaluate(
        hypotheses,
        [list(iter_lines(path)) for path in references],
        ("bleu", "chrf", "ter"),
        model.hparams.bleu_tokenize,
        model.hparams.bleu_lowercase,
    )


def _input(path: str) -> Iterator[str]:
    """Lines of a file, or of standard input."""
    return stream_lines(sys.stdin.buffer, "standard input") if path == "-" else iter_lines(path)


def _documents(path: str | None) -> Iterator[int] | None:
    """The documents' ids of a file, if there is one."""
    return None if path is None else iter_documents(path)


@contextlib.contextmanager
def _output(path: str | None) -> Iterator[BinaryIO]:
    """A file written beside and renamed when complete, or standard output."""
    if path is None:
        if sys.stdout is None:
            raise UserError("standard output is closed: give --inference_output_file")
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with replacing(path) as stream:
        yield stream


def _blocks(items: Iterator, size: int) -> Iterator[list]:
    block: list = []
    for item in items:
        block.append(item)
        if len(block) == size:
            yield block
            block = []
    if block:
        yield block


def _note(message: str) -> None:
    print(message, file=sys.stderr, flush=True)
