"""The help of `tfmann train -h` and `python -m tfmann.nmt --help`: examples, then flags."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from typing import Any

from tfmann import config
from tfmann.cli import mode_settings, validation
from tfmann.config.other_names import SHORT_NAMES

_EXAMPLES = {
    "train": """\
tfmann train --hparams_path=cpu/multi30k/de_en_luong.json --out_dir=runs/mine \\
    --src=de --tgt=en --train_prefix=DIR/train --dev_prefix=DIR/dev --test_prefix=DIR/test
tfmann train --data=FOLDER --hparams_path=tiny/luong.json --out_dir=runs/mine  # of tfmann prepare
tfmann train --out_dir=runs/mine                    # continues a run with its own settings""",
    "infer": """\
tfmann translate --model=runs/mine --input=FILE --output=FILE
tfmann translate --model=runs/mine --ensemble=runs/b,runs/c --input=FILE --output=FILE
python -m tfmann.nmt --out_dir=runs/mine --inference_input_file=FILE --alignment_file=FILE""",
    "eval": """\
tfmann evaluate --model=runs/mine
tfmann evaluate --model=runs/mine --input=FILE --reference=FILE""",
    "score": """\
tfmann score --model=runs/mine --input=FILE --reference=FILE""",
    "align": """\
tfmann align --model=runs/mine --input=FILE --reference=FILE""",
    "tune": """\
tfmann tune --model=runs/mine""",
    "lexicon": """\
tfmann lexicon --model=runs/mine
tfmann translate --model=runs/mine --replace_unk --input=FILE""",
    "shortlist": """\
tfmann shortlist --model=runs/mine
tfmann translate --model=runs/mine --shortlist=runs/mine/shortlist.txt --input=FILE""",
    "export": """\
tfmann export --model=runs/mine --beam_width=5 --export_dir=runs/mine/export""",
}
_OPENING = {
    "train": "Trains and evaluates a model; the command that began a run also continues it.\n"
    "An explicit flag wins over the JSON file, which wins over the default.",
    "infer": "Translates a file, in batches.",
    "eval": "Translates the dev and test sets, or a file with references; prints scores as JSON.",
    "score": "Prints the log-probability of each given translation.",
    "align": "Prints the word alignment of each given pair, by the attention of a forced decoding.",
    "tune": "Chooses the length penalty on a development set, and saves it in the run.",
    "lexicon": "Learns from the training text which word translates which, for --replace_unk.",
    "shortlist": "Learns from the training text which tokens translate which, for --shortlist:\n"
    "--shortlist_best translations of each token, and --shortlist_first frequent tokens.",
    "export": "Writes a SavedModel, which plain TensorFlow loads.",
}  # fmt: skip
_TITLES = {
    "architecture": "the model",
    "data": "text and vocabulary",
    "training": "training",
    "inference": "translating and scoring",
}


def flag_help(values: Any, opening: str) -> str:
    """Returns the help of `values.mode`, or of all flags where no mode is given.

    Args:
      values: the flags (`nmt.define_flags`).
      opening: the first lines where no mode is given.
    """
    mode = values.mode
    examples = [_EXAMPLES[mode]] if mode else _EXAMPLES.values()
    lines = [_OPENING[mode] if mode else opening.strip(), "", "examples:"]
    lines += [textwrap.indent(example, "  ") for example in examples]
    lines += ["", "what to do:", *_flag_paragraphs(validation.flags_of(mode), values)]
    if mode in mode_settings.OWN:
        title = "what it writes:" if mode in mode_settings.KINDS else "the sets:"
        lines += ["", title, *_flag_paragraphs(mode_settings.OWN[mode], values)]
    for kind in mode_settings.KINDS.get(mode or "train", ("inference",)):  # training takes all
        for title, names in _groups(kind):
            lines += ["", f"{title}:", *_flag_paragraphs(names, values)]
    if mode and mode != "train":
        lines += ["", "The settings of models and training: tfmann train -h"]
    return "\n".join(lines)


def _groups(kind: str) -> Iterator[tuple[str, list[str]]]:
    """Yields titles and settings of a kind; those of some cells come after those of all."""
    owners = config.cells_by_setting()
    names = [name for name, field in config.FIELDS.items() if field.kind == kind]
    yield _TITLES[kind], [name for name in names if name not in owners]
    by_cells: dict[str, list[str]] = {}
    for name in names:
        if name in owners:
            by_cells.setdefault(", ".join(owners[name]), []).append(name)
    for cells, settings in by_cells.items():
        owner = "these cells" if "," in cells else "the cell"
        yield f"{_TITLES[kind]}, for {owner}: {cells}", settings


def _flag_paragraphs(names: Iterable[str], values: Any) -> Iterator[str]:
    for name in names:
        flag = values[name]
        default = "" if flag.default is None else f" (default: {flag.default!r})"
        short = f" Also: --{SHORT_NAMES[name]}" if name in SHORT_NAMES else ""
        yield textwrap.fill(
            f"--{name}: {flag.help}{default}{short}",
            width=100,
            initial_indent="  ",
            subsequent_indent="      ",
            break_long_words=False,
            break_on_hyphens=False,
        )
