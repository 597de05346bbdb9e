"""What the command line does with a trained model: infer, score, align, eval."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import sys
from collections.abc import Iterator
from typing import Any, BinaryIO

from tfmann import api
from tfmann.corpus.files import iter_lines, iter_parallel, replacing, stream_lines
from tfmann.corpus.inputs import evaluation_sets
from tfmann.evaluation import bleu
from tfmann.evaluation.alignment import format_pharaoh


def run(mode: str, values: Any, settings: dict[str, Any]) -> None:
    """Loads the model of `--out_dir` and does what `mode` says.

    Args:
      mode: infer, score, align or eval.
      values: the flags (`nmt.define_flags`).
      settings: hyper-parameters to change.
    """
    model = api.load(values.out_dir, values.ckpt, _note, **settings)
    if mode == "eval":
        _evaluate(model, values)
        return
    with contextlib.ExitStack() as stack:
        out = stack.enter_context(_output(values.inference_output_file))
        if mode == "infer":
            links = None
            if values.alignment_file:
                links = stack.enter_context(replacing(values.alignment_file))
            best: list[str] | None = [] if values.inference_ref_file else None
            _infer(model, values.inference_input_file, out, links, best)
        else:
            best = None
            _forced(mode, model, values, out)
    if best is not None:
        for score in _scores(model, best, [values.inference_ref_file]):
            _note(f"{score.name} {score.value:.2f} [{score.signature}]")


def _infer(
    model: api.Model,
    source: str,
    out: BinaryIO,
    links: BinaryIO | None,
    best: list[str] | None,
) -> None:
    """Writes translations: one a line, or `line ||| text ||| score` where n best are asked for.

    Of these a sentence has at least one and at most n, from best to worst: fewer where the search
    found fewer, as with a tiny vocabulary. The number of the line, from 0, says whose they are.

    Args:
      model: what translates.
      source: a file, or - for standard input.
      out: where translations go.
      links: where their alignments go, a line each, if they are asked for.
      best: takes the best translation of each line, if that is asked for.
    """
    h = model.hparams
    chunk = h.infer_batch_size if source == "-" else 0
    if source == "-" and sys.stdin.isatty():
        chunk = 1
    n_best_wanted = h.num_translations_per_input > 1
    for number, n_best in enumerate(
        model.translate(_input(source), with_attention=links is not None, chunk=chunk)
    ):
        if best is not None:
            best.append(n_best[0].text)
        for one in n_best:
            line = f"{number} ||| {one.text} ||| {one.score:.6f}" if n_best_wanted else one.text
            out.write(f"{line}\n".encode())
            if links is not None:
                found = []
                if one.attention is not None:
                    found = api.links(one.attention, one.source_tokens, one.tokens)
                links.write(f"{format_pharaoh(found)}\n".encode())
        if source == "-":
            out.flush()


def _forced(mode: str, model: api.Model, values: Any, out: BinaryIO) -> None:
    """Writes a log-probability, or the alignment, of each given pair."""
    pairs = (
        (pair.source, pair.target)
        for pair in iter_parallel(values.inference_input_file, values.inference_ref_file)
    )
    for block in _blocks(pairs, 64 * model.hparams.infer_batch_size):
        if mode == "score":
            lines = [f"{forced.log_prob:.6f}" for forced in model.score(block)]
        else:
            lines = [format_pharaoh(links) for links in model.align(block)]
        out.write("".join(f"{line}\n" for line in lines).encode())


def _evaluate(model: api.Model, values: Any) -> None:
    """Translates a file with references, or the dev and test sets, and prints scores as JSON."""
    if values.inference_input_file:
        sets = {"input": (values.inference_input_file, [values.inference_ref_file])}
    else:
        sets = evaluation_sets(model.hparams)
    results = {}
    for name, (source, references) in sets.items():
        hypotheses = [n_best[0].text for n_best in model.translate(_input(source))]
        scores = _scores(model, hypotheses, references)
        results[name] = [dataclasses.asdict(score) for score in scores]
    with _output(values.inference_output_file) as out:
        body = {"checkpoint": model.checkpoint, "scores": results}
        out.write((json.dumps(body, indent=1, ensure_ascii=False) + "\n").encode())


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


@contextlib.contextmanager
def _output(path: str | None) -> Iterator[BinaryIO]:
    """A file written beside and renamed when complete, or standard output."""
    if path is None:
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
