"""The page of a user's own runs: scores, learning curves, sharpness of attention, sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Callable, NamedTuple

from tfmann.report import curves
from tfmann.report.figures import Tracer
from tfmann.report.html import render_template
from tfmann.report.own_runs import OwnRun, differing_settings, find_runs, translated_sets
from tfmann.report.results_page import ExampleOptions, make_examples

_SCORES = ("BLEU", "chrF2", "TER")
_SHARPNESS = {
    "entropy": "entropy as a share of the uniform distribution's",
    "greatest_weight": "greatest weight",
    "distinct_positions": "positions that differ, a step",
}


class HeadCharts(NamedTuple):
    """The sharpness of the attention, or of a head, during training."""

    head: str
    charts: list[curves.Chart]
    systems: list[tuple[int, str]]  # number and title, for the legend


def render_page(options: ExampleOptions, tracer: Tracer | None, log: Callable[[str], None]) -> str:
    """Returns the HTML of the page.

    Args:
      options: the folder of the runs, and the choice of sentences.
      tracer: runs models for the figures; None draws no figures.
      log: receives a line before slow work, and for what is left out.

    Raises:
      UserError: the folder has no runs.
    """
    runs = find_runs(options.out_dir, log)
    sets = translated_sets(runs, log)
    examples = [
        make_examples(f"own-{number}", title, test, options, tracer, log)
        for number, (title, test) in enumerate(sets)
    ]
    systems = list(enumerate(run.title for run in runs))
    return render_template(
        "runs.html",
        heading=_HEADING,
        rows=_rows(runs),
        charts=_charts(runs, (curves.BLEU, curves.PERPLEXITY), _learning),
        systems=[system for system in systems if runs[system[0]].history],
        heads=_head_charts(runs),
        all_examples=examples,
        frame=curves,
    )


_HEADING = (
    "run", "settings that differ", "updates", "best dev BLEU", "at update", "dev perplexity there",
    *(f"{split} {name}" for split in ("dev", "test") for name in _SCORES),
    "million parameters", "words/s in training",
)  # fmt: skip


def _rows(runs: Sequence[OwnRun]) -> list[list[str]]:
    """Returns a row of `_HEADING` for each run; `-` where it has no such number."""
    settings = differing_settings(runs)
    rows = []
    for run in runs:
        best = run.best_evaluation()
        updates = f"{run.results['steps']:,}"
        scores = [run.scores(split).get(name) for split in ("dev", "test") for name in _SCORES]
        rows.append(
            [
                run.title,
                settings[run.title] or "-",
                updates if run.finished else f"{updates} of {run.settings['num_train_steps']:,}",
                f"{best['dev_bleu']:.2f}" if best else "-",
                f"{best['step']:,}" if best else "-",
                f"{best['dev_ppl']:.2f}" if best else "-",
                *("-" if score is None else f"{score:.2f}" for score in scores),
                _formatted(run.results.get("parameters"), 1e-6, 2),
                _formatted(_speed(run.results), 1.0, 0),
            ]
        )
    return rows


def _speed(results: Mapping[str, Any]) -> float | None:
    words, seconds = results.get("words"), results.get("train_seconds")
    return words / seconds if words and seconds else None


def _formatted(value: float | None, factor: float, digits: int) -> str:
    return "-" if value is None else f"{value * factor:.{digits}f}"


def _learning(point: Mapping[str, Any]) -> dict[str, float]:
    return {curves.BLEU: point["dev_bleu"], curves.PERPLEXITY: point["dev_ppl"]}


def _charts(
    runs: Sequence[OwnRun],
    measures: Sequence[str],
    values_of: Callable[[Mapping[str, Any]], Mapping[str, float] | None],
) -> list[curves.Chart]:
    """Draws measures over updates and minutes; `values_of` takes them from an evaluation."""
    lines = []
    for number, run in enumerate(runs):
        rate = run.results.get("train_seconds", 0.0) / 60 / max(run.results["steps"], 1)
        points = [(point["step"], values_of(point)) for point in run.history]
        evaluations = [
            curves.Evaluation(step, step * rate, values) for step, values in points if values
        ]
        if evaluations:
            lines.append((run.title, number, evaluations))
    return curves.draw(lines, measures)


def _head_charts(runs: Sequence[OwnRun]) -> list[HeadCharts]:
    """Returns the charts of the attention, then of each head that a run has."""
    names = dict.fromkeys(
        head for run in runs for point in run.history for head in point.get("addresses", {})
    )
    charts = []
    for head in sorted(names, key=lambda name: (name != "attention", name)):

        def sharpness(point: Mapping[str, Any], head: str = head) -> Mapping[str, float] | None:
            measured = point.get("addresses", {}).get(head, {})
            if not measured.keys() >= _SHARPNESS.keys():  # written by another version
                return None
            return {title: measured[key] for key, title in _SHARPNESS.items()}

        of_head = _charts(runs, tuple(_SHARPNESS.values()), sharpness)
        charts.append(HeadCharts(head.replace("_", " "), of_head, of_head[0].systems))
    return charts
