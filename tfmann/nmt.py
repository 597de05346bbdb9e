"""The command line: `python -m tfmann.nmt --hparams_path=FILE --out_dir=DIR`.

Trains and evaluates; with --inference_input_file it translates; with --mode=lexicon it learns what
--replace_unk needs, with --mode=shortlist what --shortlist needs; with --mode=export it writes a
SavedModel. An explicit flag wins over the JSON file, which wins over the default.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import Any

from absl import flags

from tfmann import __version__, config
from tfmann.cli import mode_settings, validation
from tfmann.cli.flag_help import flag_help
from tfmann.config.other_names import OTHER_SETTINGS, with_long_names
from tfmann.config.search import DOCUMENT_HISTORIES
from tfmann.data import fingerprints, input_checks
from tfmann.datasets import corpus_record
from tfmann.errors import UsageError, interruptible, run_command
from tfmann.utils import resources
from tfmann.utils.arguments import with_home
from tfmann.utils.tensorflow_import import import_tensorflow

# How the errors of Python begin that absl gives as reasons, and what was expected.
_REASONS = {
    r"invalid literal for int\(\)": "int",
    "could not convert string to float": "float",
    r"\('Non-boolean argument": "true or false",
}
_ONCE = ("hparams_path", "data")  # flags of which both would be expected to count
_LEARNING = ("train", "lexicon", "shortlist")  # modes that learn from the training text


def define_flags() -> flags.FlagValues:
    """Defines one flag per setting, and those that select what to do."""
    values = flags.FlagValues()
    text = {
        "hparams_path": "JSON file of settings: a path, or the name of one that comes with tfmann, "
        "such as cpu/multi30k/de_en_luong.json.",
        "data": "Folder that `tfmann prepare` wrote: its text, subwords and vocabularies.",
        "out_dir": "Folder of the run: everything is written here.",
        "ckpt": "Folder of a checkpoint to decode with, rather than the best; or another run's.",
        "ensemble": "Folders of further runs, with commas between them, that choose the words "
        "together with that of --out_dir.",
        "inference_input_file": "Text to translate, score or align; - is standard input.",
        "inference_output_file": "Where the result goes; standard output if not given.",
        "inference_ref_file": "Translations to score, to align or to compare with.",
        "inference_document_file": "A number for the document of each input line, for models that "
        "look at other sentences; if not given, a blank line ends a document.",
        "inference_prefix_file": "What each input line's translation begins with; blank for any.",
        "inference_constraint_file": "Phrases that the translation of each input line contains, "
        "with tabs between them; blank for none.",
        "inference_contrast_file": "Wrong translations of each line, with ||| between them, which "
        "--mode=score compares with that of --inference_ref_file; blank for a line without.",
        "alignment_file": "Where the alignments of translations go, in Pharaoh format.",
        "export_dir": "Where --mode=export writes a SavedModel; OUT_DIR/export if not given.",
        "gold_file": "Links to score alignments by: i-j sure, ipj possible, words from 0.",
    }
    for name, meaning in text.items():
        again = name not in _ONCE
        flags.DEFINE_string(name, None, meaning, flag_values=values, allow_overwrite=again)
    flags.DEFINE_enum("mode", None, validation.MODES, "What to do.", flag_values=values)
    flags.DEFINE_enum(
        "document_history",
        None,
        DOCUMENT_HISTORIES,
        "History of each sentence. own (default): its document, with the model's translations; "
        "reference: its document, with the translations of --inference_ref_file; other: another "
        "document of similar length.",
        flag_values=values,
    )
    counts: dict[str, tuple[int | None, str]] = {
        "document_history_seed": (
            None,
            "Which documents --document_history=other exchanges: 1 if not given.",
        ),
        "num_workers": (1, "Jobs that translate a file together, each started with its --jobid."),
        "jobid": (0, "Which of --num_workers this is, from 0; the last to end joins the parts."),
    }
    for name, (default, meaning) in counts.items():
        flags.DEFINE_integer(name, default, meaning, flag_values=values)
    switches = {
        "print_hparams": "Print all settings as JSON (file and base, flags, defaults), and do "
        "nothing else.",
        "word_scores": "--mode=score writes, after each log-probability and a tab, the tokens with "
        "theirs.",
    }
    for name, meaning in switches.items():
        flags.DEFINE_boolean(name, False, meaning, flag_values=values)
    flags.DEFINE_boolean("help", False, "Show this help.", short_name="h", flag_values=values)
    flags.DEFINE_boolean("version", False, "Show tfmann's version.", flag_values=values)
    _define_settings(values)
    return values


def _define_settings(values: flags.FlagValues) -> None:
    """Defines one flag per setting; raises TypeError if it has the name of another flag."""
    for name, field in config.FIELDS.items():
        if name in values:
            raise TypeError(f"--{name} is a flag of the command line: rename the setting")
        if field.choices is not None:
            flags.DEFINE_enum(
                name,
                field.default,
                field.choices,
                field.help,
                flag_values=values,
                case_sensitive=False,
            )
            continue
        define: Any = {
            bool: flags.DEFINE_boolean,
            int: flags.DEFINE_integer,
            float: flags.DEFINE_float,
            str: flags.DEFINE_string,
        }[field.type]
        define(name, field.default, field.help, flag_values=values)


def parse(argv: Sequence[str]) -> tuple[flags.FlagValues, dict[str, Any]]:
    """Parses a command line without its program name.

    Returns:
      all flags, and the hyper-parameters that were given explicitly.

    Raises:
      UsageError: an unknown flag (with the nearest name), a bad value, a left-over argument.
    """
    values = define_flags()
    try:
        unparsed = values(["nmt", *with_long_names(with_home(argv))])[1:]
    except UnicodeDecodeError as error:
        raise UsageError(f"--flagfile: {error}") from None
    except flags.UnrecognizedFlagError as error:
        advice = OTHER_SETTINGS.get(error.flagname)
        if advice is None:
            raise UsageError(str(error)) from None
        raise UsageError(f"there is no flag --{error.flagname}: {advice}") from None
    except (flags.Error, ValueError) as error:  # ValueError: --nocell=3, of a boolean
        raise UsageError(_plain(str(error))) from None
    if unparsed:
        raise UsageError(f"unexpected argument {unparsed[0]!r}: write settings as --name=value")
    explicit = {name: getattr(values, name) for name in config.FIELDS if values[name].present}
    for name, value in explicit.items():
        config.FIELDS[name].check(name, value)
    return values, explicit


def _plain(message: str) -> str:
    """Returns a message of absl in the words of this program."""
    for reason, expected in _REASONS.items():
        message = re.sub(f": {reason}.*", f": expected {expected}", message, flags=re.DOTALL)
    return re.sub("already defined as .*", r"\g<0>; leave one of them out", message)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command line; returns the exit status."""
    return run_command(lambda: run(sys.argv[1:] if argv is None else argv))


def run(argv: Sequence[str]) -> None:
    """Runs one command line, as `main` does.

    Raises:
      UserError: what `main` would print.
    """
    values, explicit = parse(argv)
    if values.help:
        _print(flag_help(values, str(__doc__)))
        return
    if values.version:
        _print(f"tfmann {__version__}")
        return
    validation.refuse_empty_names(values)
    if values.print_hparams:
        _print(config.to_json(_settings(values, explicit)))
    else:
        _dispatch(values, explicit)


def _settings(values: flags.FlagValues, explicit: dict[str, Any]) -> config.HParams:
    """Returns the settings that training would have, of a new run if `--out_dir` is not given."""
    path, explicit = _settings_path(values), _with_data(values, explicit)
    if values.out_dir:
        hparams = config.settings_for_training(values.out_dir, path, explicit)
    else:
        hparams = config.make(explicit, path)
        config.refuse_unread(explicit, hparams.cell)
    if values.mode in (None, "train"):
        config.refuse_idle(explicit, hparams)
    return hparams


def _settings_path(values: flags.FlagValues) -> str | None:
    """Returns the path of the JSON file of settings, if one is given."""
    name: str | None = values.hparams_path
    return resources.settings_path(name) if name else None


def _with_data(values: flags.FlagValues, explicit: dict[str, Any]) -> dict[str, Any]:
    """Adds the settings of `--data` to those that were given explicitly, which win."""
    folder: str | None = values.data
    return {**corpus_record.load_settings(folder), **explicit} if folder else explicit


def _dispatch(values: flags.FlagValues, explicit: dict[str, Any]) -> None:
    mode = values.mode or ("infer" if values.inference_input_file else "train")
    validation.check_flags(mode, values)
    mode_settings.check(mode, explicit)
    path, explicit = _settings_path(values), _with_data(values, explicit)
    if mode in _LEARNING:
        hparams = config.settings_for_training(values.out_dir, path, explicit)
    else:
        of_file = config.read_json(path) if path else {}  # which may be of a training, too
        settings = {name: of_file[name] for name in of_file if not config.is_of_training(name)}
        settings.update(explicit)
        hparams = config.settings_of_model(values.out_dir, settings)
    if mode not in ("lexicon", "shortlist"):  # which make no search
        config.refuse_idle(explicit, hparams)
    if mode in _LEARNING:
        _learn(mode, hparams, values.out_dir, "train_prefix" not in explicit)
    else:
        validation.check_model(mode, values, hparams)
        import_tensorflow()
        from tfmann.cli import predict

        with interruptible():
            predict.run(mode, values, settings)


def _learn(mode: str, hparams: config.HParams, out_dir: str, is_of_run: bool) -> None:
    """Runs a mode that learns from the training text, which may be that of the run."""
    if mode == "train":
        input_checks.require_training_files(hparams, out_dir)
        import_tensorflow()
        from tfmann.cli import train

        train.train(hparams, out_dir, log=_print)
        return
    if not (hparams.train_prefix or hparams.src):
        config.settings_of_model(out_dir, {})  # says that there is no run that would have them
    with interruptible():
        if is_of_run:
            fingerprints.require_same_text(hparams, out_dir, "train_prefix")
        if mode == "lexicon":
            from tfmann.cli.learn_lexicon import learn_lexicon

            learn_lexicon(hparams, out_dir, log=_print)
        else:
            from tfmann.cli.learn_shortlist import learn_shortlist

            learn_shortlist(hparams, out_dir, log=_print)


def _print(message: str) -> None:
    print(message, flush=True)


if __name__ == "__main__":
    sys.exit(main())
