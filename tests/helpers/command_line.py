"""Command lines, what they must leave alone, and a model for them to use."""

import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path

from tfmann import config, nmt
from tfmann.data import run_vocabularies, text_encoder
from tfmann.data.subword import make_segmenter
from tfmann.data.vocab import Vocabulary
from tfmann.training import checkpoint, named_variables

ROOT = Path(nmt.__file__).parent.parent
WORDS = ["der", "hund", "und", "die", "katze", "sieht", "größe", "một", "chó", "。"]
SPECIALS = "<unk>\n<s>\n</s>\n"


def tree(*folders):
    """Every file below some folders, by content; a changed one is named by the comparison."""
    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
        for folder in folders
        for path in sorted(folder.rglob("*"))
    }


def command(out, *flags, **settings):
    """A command line for a run; a setting of None is left out."""
    given = {key: value for key, value in settings.items() if value is not None}
    return [f"--out_dir={out}", *flags, *(f"--{key}={value}" for key, value in given.items())]


def fails(argv, capsys, status, words, main=nmt.main):
    """Runs a command line that must end in one line on standard error."""
    capsys.readouterr()
    assert main(argv) == status
    message = capsys.readouterr().err
    assert message.startswith("tfmann: ") and message.count("\n") == 1, message
    assert re.search(words, message), message


def fails_after_note(argv, capsys, status, words):
    """As `fails`, for a command that first prints which weights it uses."""
    capsys.readouterr()
    assert nmt.main(argv) == status
    *notes, message = capsys.readouterr().err.splitlines()
    assert message.startswith("tfmann: ") and re.search(words, message), message
    assert all("weights of" in note or "falling back" in note for note in notes), notes


def run_in_a_process(argv, **options):
    """Runs a command line in a process of its own, in the plainest locale."""
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "LC_ALL": "C"}
    environment.pop("PYTHONIOENCODING", None)
    return subprocess.run(
        [sys.executable, "-m", "tfmann.nmt", *argv],
        stderr=subprocess.PIPE, cwd=ROOT, env=environment, **options,
    )  # fmt: skip


LINES = ["der hund", "", "größe một chó", "unbekannt der", "die\u2028katze 。 und", "hund"]
CAP = 7


def write_model(folder, variant="luong", words=None, **changes):
    """A model of large random weights in a folder as training leaves it.

    `words` are of both sides, if they are not to be WORDS and the same in capitals.
    """
    from helpers import small_models  # here, so that what needs no TensorFlow does not load it

    from tfmann.models.seq2seq import Seq2Seq

    h = small_models.hparams(
        variant, src="src", tgt="tgt", tgt_max_len_infer=CAP, infer_batch_size=4
    )
    h = h.replace(infer_mode="beam_search", beam_width=3, **changes)
    segmenter = make_segmenter(h.subword_option, h.subword_model)
    sides = [
        text_encoder.TextEncoder(Vocabulary.from_tokens(tokens), segmenter)
        for tokens in ((words, words) if words else (WORDS, [word.upper() for word in WORDS]))
    ]
    languages = text_encoder.LanguagePair(*sides)
    built = Seq2Seq(h, *(len(side.vocabulary) for side in languages))
    variables = named_variables.by_name(built.trainable_variables)
    arrays = {name: variable.numpy() for name, variable in variables.items()}
    run_vocabularies.save(languages, h, str(folder))
    config.save(h, folder / "hparams.json")
    checkpoint.write(str(folder / "best_bleu"), arrays, None, {})
    return folder


def write_source(path):
    """LINES as an editor on another system may leave them."""
    path.write_bytes("\ufeffder hund\r\n\n".encode() + "\n".join(LINES[2:]).encode())
    return path
