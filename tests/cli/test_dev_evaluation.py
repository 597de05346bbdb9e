"""The progress bar of an evaluation."""

import functools
import io
from types import SimpleNamespace

import pytest
from tqdm import tqdm

from tfmann.cli import dev_evaluation
from tfmann.config import HParams

LINES = ["a b", "c", "d e f"]


@pytest.fixture
def translate(monkeypatch):
    """Translates LINES with a terminal, or a pipe, as standard error."""

    def run(is_terminal):
        stream, shown = io.StringIO(), []
        stream.isatty = lambda: is_terminal
        monkeypatch.setattr("sys.stderr", stream)
        at_once = functools.partial(tqdm, mininterval=0)
        monkeypatch.setattr(dev_evaluation, "tqdm", at_once)

        def n_best_lists(lines, documents):
            del documents
            for line in lines:
                yield [line.upper(), "a worse one"]
                shown.append(stream.getvalue().rpartition("\r")[2].strip())

        translator = SimpleNamespace(model=None, translate=n_best_lists)
        monkeypatch.setattr(dev_evaluation, "Perplexity", lambda model: None)
        evaluation = dev_evaluation.DevEvaluation(
            HParams(dev_prefix="dev"), None, translator, None, words=0
        )
        return evaluation._translate(LINES, None), shown, stream.getvalue()

    return run


def test_a_terminal_shows_how_many_sentences_are_translated(translate):
    best, shown, written = translate(is_terminal=True)
    assert best == ["A B", "C", "D E F"]
    for number, line in enumerate(shown[:2], 1):
        assert line.startswith("dev:") and f"| {number}/3 [" in line and "sentence" in line
    assert written.endswith("\r") and not written.rstrip("\r").rpartition("\r")[2].strip()


def test_a_file_gets_no_progress_bar(translate):
    best, _, written = translate(is_terminal=False)
    assert best == ["A B", "C", "D E F"] and written == ""
