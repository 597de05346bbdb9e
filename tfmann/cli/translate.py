"""Translates with a trained model: `tfmann translate --model=DIR`.

A file (--input) is translated in batches. Without it, a prompt or a pipe is answered line by line:
the model is loaded once, and every line is answered immediately. A model that reads other sentences
takes the lines before into account; a blank line begins another document.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from tfmann import config, nmt
from tfmann.cli import validation
from tfmann.cli.model_flags import add_model, add_settings, given_settings
from tfmann.config.other_names import SHORT_NAMES
from tfmann.config.search import DOCUMENT_HISTORIES, SHORTLIST_SETTINGS, WORD_MEMORY_SETTINGS
from tfmann.data import lexicon, memory_files
from tfmann.data.text_files import stream_lines
from tfmann.errors import UsageError, UserError, interruptible, print_message, run_command
from tfmann.utils.arguments import ArgumentParser
from tfmann.utils.tensorflow_import import import_tensorflow

if TYPE_CHECKING:
    from tfmann.api import Model, Translation

T = TypeVar("T")

# The settings that apply to the translation of a single line.
_SETTINGS = (
    "infer_mode", "beam_width", "length_penalty_weight", "coverage_penalty_weight",
    "sampling_temperature", "sampling_top_k", "sampling_top_p", "src_max_len_infer",
    "tgt_max_len_infer", "tgt_min_len_infer", "no_repeat_ngram_size", *WORD_MEMORY_SETTINGS,
    *SHORTLIST_SETTINGS, "replace_unk", "lexicon_file",
)  # fmt: skip

# Arguments of a file, which a conversation has no use for.
_OF_FILES = (
    "output", "documents", "prefixes", "constraints", "reference", "document_history",
    "document_history_seed",
)  # fmt: skip

# The flags of a file that `tfmann.nmt` has under other names.
_NMT_NAMES = {name: short for name, short in SHORT_NAMES.items() if name != "out_dir"}
_SAME_NAMES = ("ckpt", "ensemble", "document_history", "document_history_seed")

_HELP = """\
  a line of text  is translated
  a blank line    begins another document, for models that look at other sentences
  :n 3            shows the three best translations of a line, with their scores; :n 1 the best
  :prefix WORDS   lets the next translations begin with the words; :prefix alone with any
  :contain A|B    lets the next translations contain the phrases A and B; :contain alone any
  :a              switches the display of each token's most attended source token on or off
  :attention F    draws the attention of the last translation; F ends in .png, .svg or .pdf
  :q              ends, as Ctrl-D does"""


class Conversation:
    """A translator that answers one line at a time.

    Attributes:
      n_best: how many translations an answer has.
      alignments: show the most attended source token of each token.
      prefix: what translations begin with; blank: anything.
      phrases: what translations contain.
    """

    def __init__(self, model: Model, n_best: int = 1, alignments: bool = False):
        """Compiles the search, so that the first line is answered as fast as the others.

        Args:
          model: a model that returns at least `n_best` translations of a line.
          n_best: see the class.
          alignments: see the class; the cell has alignments then.
        """
        self.n_best, self.alignments = n_best, alignments
        self.prefix: str = ""
        self.phrases: list[str] = []
        self._model, self._text = model, model.translator.text
        self._most = model.hparams.num_translations_per_input
        self._attends = model.has_alignments
        self._last: Translation | None = None
        self._line = "."
        list(model.translate([self._line], self._attends, 1))
        self._answers = self._begin_answers()

    def _begin_answers(self) -> Iterator[list[Translation]]:
        return self._model.translate(
            self._repeat(lambda: self._line),
            self._attends,
            1,
            prefixes=self._repeat(lambda: self.prefix),
            constraints=self._repeat(lambda: self.phrases),
        )

    def _repeat(self, value: Callable[[], T]) -> Iterator[T]:
        while True:  # the generator that reads this one holds the state of the document
            yield value()

    def answer(self, line: str) -> list[str]:
        """Translates a line; returns the lines to print: by default the best translation.

        Raises:
          UserError: it cannot be translated; the next line begins another document.
        """
        self._line = line
        try:
            n_best = next(self._answers)
        except UserError:
            self._answers = self._begin_answers()  # the old one has ended by its error
            raise
        if not n_best[0].tokens:  # blank, or of characters that the model's tokens leave out
            return [""]
        self._last = n_best[0]
        lines = []
        for rank, translation in enumerate(n_best[: self.n_best], start=1):
            line = translation.text
            if self.n_best > 1:
                line = f"{rank} {translation.score:9.4f}  {line}"
            lines.append(line)
            if self.alignments:
                lines.append("  " + " ".join(_token_alignments(translation)))
        return lines

    def run_command(self, command: str) -> list[str]:
        """Runs a command, a line that begins with a colon; returns the lines to print.

        Raises:
          UsageError: the command or its argument is invalid.
          UserError: a file cannot be written.
        """
        name, _, argument = command.partition(" ")
        argument = argument.strip()
        if name == ":n":
            self.n_best = self._count(argument)
            return []
        if name == ":prefix":
            self.prefix = argument
            return []
        if name == ":contain":
            self._contain([phrase for phrase in argument.split("|") if phrase.strip()])
            return []
        if name == ":a":
            self._require_attention(name)
            self.alignments = not self.alignments
            return [f"alignments: {'shown' if self.alignments else 'not shown'}"]
        if name == ":attention":
            return [self._draw(argument)]
        return [_HELP] if name in (":h", ":help") else [f"what is {name}?", _HELP]

    def _contain(self, phrases: list[str]) -> None:
        if phrases:  # checked here, because an error would end the generator of answers
            self._text.encode_phrases(phrases, ":contain")
            self._text.require_phrase_search(":contain")
        self.phrases = phrases

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
        from tfmann.visualization import attention_figures, image_files  # NumPy, only if drawing

        translation, attention = self._last, self._last.attention
        figure = attention_figures.attention_figure(
            attention, translation.source_tokens, translation.tokens
        )
        image_files.save_figure(figure, path)
        return f"drawn: {path}"


def _token_alignments(translation: Translation) -> Iterator[str]:
    """Yields each token with the source token of its greatest weight."""
    assert translation.attention is not None
    for token, weights in zip(translation.tokens, translation.attention):
        yield f"{token}←{translation.source_tokens[weights.argmax()]}"


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command line; returns the exit status."""
    args = _parser().parse_args(argv)
    if args.input:
        return run_command(lambda: _translate_file(args))
    with interruptible():
        return run_command(lambda: _converse(args))


def _converse(args: argparse.Namespace) -> None:
    for stream, name in ((sys.stdin, "input"), (sys.stdout, "output")):
        if stream is None:
            raise UserError(f"standard {name} is closed: give --input=FILE and --output=FILE")
    _talk(_begin(args))


def _translate_file(args: argparse.Namespace) -> None:
    command = _file_command(args)  # not in the block: its own message names flags of `tfmann.nmt`
    try:
        nmt.run(command)
    except UserError as error:
        error.args = (_with_own_flags(str(error)),)
        raise


def _with_own_flags(message: str) -> str:
    """Returns a message of `tfmann.nmt` with the flags of this command; paths stay as they are."""
    names = "|".join(_NMT_NAMES)
    flag = rf"(?<![\w/.-])(?:--)?({names})(?![\w/-]|\.\w)"
    return re.sub(flag, lambda found: f"--{_NMT_NAMES[found[1]]}", message)


def _file_command(args: argparse.Namespace) -> list[str]:
    """Returns the command line of `tfmann.nmt` that translates a file."""
    if args.alignments:
        raise UsageError(
            "--alignments are shown line by line; those of a file are written by "
            "`python -m tfmann.nmt --inference_input_file=F --alignment_file=A`"
        )
    flags = {
        "mode": "infer",
        "out_dir": args.model,
        **{nmt_name: getattr(args, name) for nmt_name, name in _NMT_NAMES.items()},
        **{name: getattr(args, name) for name in _SAME_NAMES},
        **given_settings(args, _SETTINGS),
    }
    return [f"--{name}={value}" for name, value in flags.items() if value is not None]


def _parser() -> argparse.ArgumentParser:
    parser = ArgumentParser(
        prog="tfmann translate",
        description=str(__doc__),
        epilog="on a terminal:\n" + _HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_model(parser)
    parser.add_argument("--input", help="file to translate, one sentence a line")
    parser.add_argument("--output", help="where its translations go (default: standard output)")
    parser.add_argument("--documents", help="a number for the document of each line of --input")
    parser.add_argument(
        "--prefixes", help="what the translation of each line of --input begins with, blank for any"
    )
    parser.add_argument(
        "--constraints",
        help="phrases that the translation of each line of --input contains, with tabs between "
        "them, blank for none",
    )
    parser.add_argument("--reference", help="reference translations of --input: prints BLEU")
    parser.add_argument(
        "--document_history",
        choices=DOCUMENT_HISTORIES,
        help="what a sentence has before it: its own document as translated (default), with the "
        "translations of --reference, or another document of similar length",
    )
    parser.add_argument(
        "--document_history_seed", type=int, metavar="N", help="which other documents (default: 1)"
    )
    parser.add_argument(
        "--ensemble", metavar="DIR,DIR", help="folders of further runs that choose words with it"
    )
    parser.add_argument("--n_best", type=int, default=1, help="translations of a line (default: 1)")
    parser.add_argument(
        "--alignments",
        action="store_true",
        help="show the most attended source token of each token",
    )
    for nmt_name, name in _NMT_NAMES.items():
        kind = int if name == "n_best" else str
        parser.add_argument(f"--{nmt_name}", dest=name, type=kind, help=argparse.SUPPRESS)
    parser.set_defaults(n_best=1)
    add_settings(parser, _SETTINGS)
    return parser


def _begin(args: argparse.Namespace) -> Conversation:
    for name in _OF_FILES:
        if getattr(args, name) is not None:
            raise UsageError(f"--{name} applies only to files: give --input")
    settings = {**given_settings(args, _SETTINGS), "num_translations_per_input": 1}
    hparams = config.settings_of_command(args.model, settings)
    lexicon.require(hparams, args.model)
    memory_files.require(hparams)
    folders = validation.ensemble_folders(args.ensemble)
    if args.alignments:
        members = [config.settings_of_model(folder, {}).cell for folder in folders]
        config.require_alignments([hparams.cell, *members], "--alignments")
    # As many as the search finds anyway, so that the user can ask for more later.
    most = {"beam_search": hparams.beam_width, "sample": max(args.n_best, 1)}.get(
        hparams.infer_mode, 1
    )
    if not 1 <= args.n_best <= most:
        raise UsageError(
            f"--n_best={args.n_best}: expected 1 to {most} with infer_mode={hparams.infer_mode}"
        )
    import_tensorflow()
    from tfmann import api

    settings["num_translations_per_input"] = most
    model = api.load(args.model, args.ckpt, print_message, ensemble=folders, **settings)
    return Conversation(model, args.n_best, args.alignments)


def _talk(conversation: Conversation) -> None:
    if not sys.stdin.isatty():
        for line in stream_lines(sys.stdin.buffer, "standard input"):
            _show(conversation.answer(line))
        return
    import readline  # noqa: F401  arrows and history at the prompt

    print_message("a line is translated; :help lists the commands")
    while True:
        try:
            line = input("> ")
        except EOFError:
            _show([""])
            return
        except UnicodeDecodeError as error:
            print_message(f"tfmann: that is not UTF-8: {error}")
            continue
        if line.strip() in (":q", ":quit"):
            return
        try:
            _show(
                conversation.run_command(line)
                if line.startswith(":")
                else conversation.answer(line)
            )
        except UserError as error:  # the conversation continues
            print_message(f"tfmann: {error}")


def _show(lines: Sequence[str]) -> None:
    sys.stdout.buffer.write("".join(f"{line}\n" for line in lines).encode())
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    sys.exit(main())
