"""A translator of jobs: lines and the states of documents in, translations and new states out."""

from __future__ import annotations

import functools
import itertools
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tfmann.data.text_files import number_lines
from tfmann.errors import UserError

if TYPE_CHECKING:
    from tfmann.api import Model
    from tfmann.decoding.translation import LineRequirements, Translation

_SEARCHES = 4  # compiled at a time besides the model's own; each takes seconds and some memory


class Job(NamedTuple):
    """Lines to translate.

    Attributes:
      lines: one sentence each; a blank one ends a document.
      beam: the width of the search; 0 as the model's settings have it.
      state: of the document before the first line (`Translator.resume`); None: it begins.
      required: what each translation must begin with, and contain (`Translator.resume`); empty:
        nothing.
    """

    lines: Sequence[str]
    beam: int = 0
    state: Any = None
    required: Sequence[LineRequirements] = ()


class Result(NamedTuple):
    """The answer to a job.

    Attributes:
      n_best: the translations of each line, from best to worst.
      state: of the document of the last line; None after a blank one.
      sentences: how many sentences of that document the job had.
      continues: whether that document is the one that `Job.state` is of.
    """

    n_best: list[list[Translation]]
    state: Any
    sentences: int
    continues: bool


class Abandoned(Exception):
    """Nobody waits for the translations any more."""


class Engine:
    """A model that translates batches of jobs of the same beam width. It is not thread-safe.

    Attributes:
      model: the model that translates if a job gives no width.
      documents: whether the model reads other sentences of a document.
    """

    def __init__(self, model: Model):
        """Prepares the model's own search to return as many translations as it finds."""
        self.documents = model.hparams.reads_documents
        if model.hparams.infer_mode == "beam_search":
            width = model.hparams.beam_width
            model = model.with_search(num_translations_per_input=width)
        self.model = model
        self._searches: OrderedDict[int, Model] = OrderedDict()

    def most(self, beam: int) -> int:
        """Returns the number of translations of a line that a search of this width finds."""
        return beam or self.model.hparams.num_translations_per_input

    def check(
        self, required: Sequence[LineRequirements], beam: int, widest: int, most_tokens: int
    ) -> None:
        """Checks phrases before their job waits; several threads may.

        Args:
          required: what the translations must contain.
          beam: the width of the search; 0 as the model's settings have it.
          widest: the greatest width for the phrases of a line in greedy search.
          most_tokens: of the phrases of a line together; the work grows with their square.

        Raises:
          UserError: a translation cannot contain one, or the search of this width takes none, or
            none so long.
        """
        text = self.model.translator.text
        for number, (_, phrases) in enumerate(required, start=1):
            where = f"line {number}"
            tokens = sum(map(len, text.encode_phrases(phrases, where)))
            if tokens and not beam:
                text.require_phrase_search(where)
                if text.hparams.infer_mode == "greedy" and tokens >= widest:
                    raise UserError(
                        f"{where}: the constraints have {tokens} tokens together, and greedy "
                        f"search takes at most {widest - 1}: shorten them, or give a beam"
                    )
            if tokens > most_tokens:
                raise UserError(
                    f"{where}: the constraints have {tokens} tokens together: expected at most "
                    f"{most_tokens}"
                )

    def warm_up(self) -> None:
        """Compiles the model's own search, so that the first request is as fast as the others."""
        self.run([Job(["."])])

    def run(
        self, jobs: Sequence[Job], is_wanted: Callable[[], bool] = lambda: True
    ) -> list[Result]:
        """Translates jobs of one beam width; see the class.

        Args:
          jobs: the jobs.
          is_wanted: whether somebody still waits for a result; asked before each batch of lines.

        Raises:
          Abandoned: nobody waits any more.
        """
        translator = self._search(jobs[0].beam).translator
        translator.before_batch = functools.partial(_require, is_wanted)
        documents_of_jobs = [_documents(job.lines) for job in jobs]
        texts, states, required = [], [], []
        for job, documents in zip(jobs, documents_of_jobs):
            for number, document in enumerate(documents):
                lines = [i for i in document if job.lines[i].strip()]
                texts.append([job.lines[i] for i in lines])
                required.append([job.required[i] if job.required else ("", ()) for i in lines])
                begun = number == 0 and job.state is not None
                states.append(job.state if begun else translator.begin_document())
        translated, after = translator.resume(
            texts, states, required if any(job.required for job in jobs) else None
        )
        results = iter(zip(translated, after))
        blank = translator.text.blank_translations()
        return [
            self._result(job, documents_of_jobs[i], results, blank) for i, job in enumerate(jobs)
        ]

    @staticmethod
    def _result(
        job: Job, documents: list[list[int]], results: Any, blank: list[Translation]
    ) -> Result:
        n_best: list[list[Translation]] = []
        state, sentences = job.state, 0
        for document in documents:
            translated, state = next(results)
            n_bests = iter(translated)
            sentences = len(translated)
            n_best += [next(n_bests) if job.lines[i].strip() else blank for i in document]
        ended = bool(job.lines) and not job.lines[-1].strip()
        return Result(
            n_best, None if ended else state, 0 if ended else sentences, len(documents) < 2
        )

    def _search(self, beam: int) -> Model:
        hparams = self.model.hparams
        if not beam or (hparams.infer_mode == "beam_search" and hparams.beam_width == beam):
            return self.model
        if beam not in self._searches:
            self._searches[beam] = self.model.with_search(
                infer_mode="beam_search", beam_width=beam, num_translations_per_input=beam
            )
            if len(self._searches) > _SEARCHES:
                self._searches.popitem(last=False)
        self._searches.move_to_end(beam)
        return self._searches[beam]


def _require(is_wanted: Callable[[], bool]) -> None:
    if not is_wanted():
        raise Abandoned


def _documents(lines: Sequence[str]) -> list[list[int]]:
    """Groups the lines by document; a blank line belongs to the document that it ends."""
    numbers = [number for _, number in number_lines(lines, None)]
    rows = range(len(lines))
    return [list(group) for _, group in itertools.groupby(rows, lambda i: numbers[i])]
