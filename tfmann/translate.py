"""Translates with a trained model: ``tfmann translate --model=DIR``.

A file (--input) is translated in batches. Without it, a prompt or a pipe is answered line by line:
the model is loaded once, and every line is answered at once. In a document of a model that looks at
other sentences, a line is answered knowing those before it; a blank line begins another document.
TensorFlow is imported when the command line is known to be right.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tfmann import hparams as hparams_module
from tfmann import nmt, usage
from tfmann.corpus import lexicon
from tfmann.corpus.files import stream_lines
from tfmann.errors import UsageError, UserError, status_of, stoppable

if TYPE_CHECKING:
    from tfmann.api import Model, Translation

# Those that mean something to one line at a time.
_SETTINGS = (
    "infer_mode", "beam_width", "length_penalty_weight", "coverage_penalty_weight",
    "sampling_temperature", "src_max_len_infer", "tgt_max_len_infer",
    "tgt_min_len_infer", "no_repeat_ngram_size", "replace_unk", "lexicon_file",
)  # fmt: skip

_HELP = """\
  a line of text  is translated
  a blank line    begins another document, for models that look at other sentences
  :n 3            shows the three best translations of a line, with their scores; :n 1 the best
  :a              shows, or no longer shows, which source token each token looked at most
  :attention F    draws the attention of the last translation; F ends in .png, .svg or .pdf
  :q              ends, as Ctrl-D does"""


class Conversation:
    """Lines in, answers out, one at a time.

    Attributes:
      n_best: how many translations an answer has.
      alignments: whether it says what each token looked at.
    """

    def __init__(self, model: Model, n_best: int = 1, alignments: bool = False):
        """Compiles the search, so that the first line is answered as fast as the others.

        Args:
          model: has found at least `n_best` translations of a line.
          n_best: see the class.
          alignments: see the class; the cell has alignments then.
        """
        self.n_best, self.alignments = n_best, alignments
        self._most = model.hparams.num_translations_per_input
        self._attends = hparams_module.has_alignments(model.hparams.cell)
        self._last: Translation | None = None
        self._line = "."
        list(model.translate([self._line], self._attends, 1))
        self._answers = model.translate(self._lines(), self._attends, 1)

    def _lines(self) -> Iterator[str]:
        while True:  # what is kept of a document stands in the generator that reads this one
            yield self._line

    def answer(self, line: str) -> list[str]:
        """Translates a line; returns what is to be shown: the best one's text if nothing more."""
        self._line = line
        found = next(self._answers)
        if not line.strip():
            return [""]
        self._last = found[0]
        shown = []
        for rank, one in enumerate(found[: self.n_best], start=1):
            shown.append(one.text if self.n_best == 1 else f"{rank} {one.score:9.4f}  {one.text}")
            if self.alignments:
                shown.append("  " + " ".join(_looked_at(one)))
        return shown

    def obey(self, command: str) -> list[str]:
        """Does what a line that begins with a colon asks; returns what is to be shown.

        Raises:
          UsageError: it cannot be done.
          UserError: a file cannot be written.
        """
        name, _, rest = command.partition(" ")
        rest = rest.strip()
        if name == ":n":
            self.n_best = self._count(rest)
            return []
        if name == ":a":
            self._require_attention(name)
            self.alignments = not self.alignments
            return [f"alignments: {'shown' if self.alignments else 'not shown'}"]
        if name == ":attention":
            return [self._draw(rest)]
        return [_HELP] if name in (":h", ":help") else [f"what is {name}?", _HELP]

    def _count(self, text: str) -> int:
        if not text.isdecimal() or not 1 <= int(text) <= self._most:
            raise UsageError(f":n takes a number from 1 to {self._most}, not {text!r}")
        return int(text)

    def _require_attention(self, command: str) -> None:
        if not self._attends:
            raise UsageError(f"{command}: this model's cell has no alignments")

    def _draw(self, path: str) -> str:
        self._require_attention(":attention")
        if self._last is None or self._last.attention is None:
            raise UsageError(":attention: nothing has been translated yet")
        if not path:
            raise UsageError(":attention takes the name of a file, as in :attention last.png")
        from tfmann.report import plots  # and with it matplotlib, for those who draw

        one, attention = self._last, self._last.attention
        figure = plots.attention_figure(attention, one.source_tokens, one.tokens)
        plots.save_figure(figure, path)
        return f"drawn: {path}"


def _looked_at(translation: Translation) -> Iterator[str]:
    """Each token with the source token of its greatest weight."""
    assert translation.attention is not None
    for token, weights in zip(translation.tokens, translation.attention):
        yield f"{token}←{translation.source_tokens[weights.argmax()]}"


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command line; returns the exit status."""
    asked = _parser().parse_args(argv)
    if asked.input:
        return status_of(lambda: nmt.main(_of_a_file(asked)))
    with stoppable():
        return status_of(lambda: _converse(asked))


def _converse(asked: argparse.Namespace) -> None:
    for stream, name in ((sys.stdin, "input"), (sys.stdout, "output")):
        if stream is None:
            raise UserError(f"standard {name} is closed: there is nobody to talk with")
    _talk(_begin(asked))


def _of_a_file(asked: argparse.Namespace) -> list[str]:
    """The command line of `tfmann.nmt` that translates a file."""
    if asked.alignments:
        raise UsageError(
            "--alignments are shown line by line; those of a file are written by "
            "`python -m tfmann.nmt --inference_input_file=F --alignment_file=A`"
        )
    flags = {
        "mode": "infer",
        "out_dir": asked.model,
        "ckpt": asked.ckpt,
        "inference_input_file": asked.input,
        "inference_output_file": asked.output,
        "inference_document_file": asked.documents,
        "num_translations_per_input": asked.n_best,
        **_settings(asked),
    }
    return [f"--{name}={value}" for name, value in flags.items() if value is not None]


def _settings(asked: argparse.Namespace) -> dict[str, Any]:
    """The settings of the search that are given."""
    given = {name: getattr(asked, name) for name in _SETTINGS}
    return {name: value for name, value in given.items() if value is not None}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tfmann translate",
        description=str(__doc__),
        epilog="on a terminal:\n" + _HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--model", "--out_dir", required=True, help="folder of the run (its --out_dir)"
    )
    parser.add_argument("--input", help="file to translate, one sentence a line")
    parser.add_argument("--output", help="where its translations go (default: standard output)")
    parser.add_argument("--documents", help="a number for the document of each line of --input")
    parser.add_argument("--ckpt", help="folder of a checkpoint, rather than the best")
    parser.add_argument("--n_best", type=int, default=1, help="translations of a line (default: 1)")
    parser.add_argument("--alignments", action="store_true", help="what each token looked at")
    for name in _SETTINGS:
        field = hparams_module.FIELDS[name]
        how: dict[str, Any] = {"help": f"{field.help} (default: as trained)"}
        if field.type is bool:
            how.update(action=argparse.BooleanOptionalAction, default=None)
        else:
            how.update(type=field.type, choices=field.choices)
        parser.add_argument(f"--{name}", **how)
    return parser


def _begin(asked: argparse.Namespace) -> Conversation:
    for name in ("output", "documents"):
        if getattr(asked, name):
            raise UsageError(f"--{name} is of a file: give --input")
    settings = {**_settings(asked), "num_translations_per_input": 1}
    hparams = usage.settings_of_model(asked.model, settings)
    lexicon.require(hparams, asked.model)
    if asked.alignments:
        hparams_module.require_alignments(hparams.cell, "--alignments")
    # As many as the search finds anyhow, so that more can be asked for later.
    most = {"beam_search": hparams.beam_width, "sample": max(asked.n_best, 1)}.get(
        hparams.infer_mode, 1
    )
    if not 1 <= asked.n_best <= most:
        raise UsageError(
            f"--n_best={asked.n_best}: {hparams.infer_mode} has from 1 to {most} of a line"
        )
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    from tfmann import api

    settings["num_translations_per_input"] = most
    model = api.load(asked.model, asked.ckpt, _note, **settings)
    return Conversation(model, asked.n_best, asked.alignments)


def _talk(conversation: Conversation) -> None:
    if not sys.stdin.isatty():
        for line in stream_lines(sys.stdin.buffer, "standard input"):
            _show(conversation.answer(line))
        return
    import readline  # noqa: F401  arrows and history at the prompt

    _note("a line is translated; :help tells what else can be asked")
    while True:
        try:
            line = input("> ")
        except EOFError:
            _show([""])
            return
        except UnicodeDecodeError as error:
            _note(f"tfmann: that is not UTF-8: {error}")
            continue
        if line.strip() in (":q", ":quit"):
            return
        try:
            _show(conversation.obey(line) if line.startswith(":") else conversation.answer(line))
        except UserError as error:  # the conversation goes on
            _note(f"tfmann: {error}")


def _show(lines: Sequence[str]) -> None:
    sys.stdout.buffer.write("".join(f"{line}\n" for line in lines).encode())
    sys.stdout.buffer.flush()


def _note(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
