"""The command line: what it refuses, in which words and with which status, and what it leaves."""

import hashlib
import io
import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import small

from tfmann import hparams as hparams_module
from tfmann import nmt
from tfmann.corpus import files, text
from tfmann.corpus.subword import make_segmenter
from tfmann.corpus.vocab import Vocabulary
from tfmann.training import checkpoint

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
    return [f"--out_dir={out}", *flags, *(f"--{key}={value}" for key, value in settings.items())]


def fails(argv, capsys, status, words):
    """Runs a command line that must end in one line on standard error."""
    capsys.readouterr()
    assert nmt.main(argv) == status
    message = capsys.readouterr().err
    assert message.startswith("tfmann: ") and message.count("\n") == 1, message
    assert re.search(words, message), message


# --- before TensorFlow is there ---------------------------------------------------------------


@pytest.mark.parametrize(
    "argv, status",
    [
        (["--help"], 0),
        (["--num_unit=3"], 2),
        (["--num_units=many"], 2),
        (["--mode=infer", "--out_dir=x"], 2),
        ([], 2),
    ],
)
def test_help_and_usage_errors_come_without_tensorflow(argv, status):
    program = (
        "import sys\nfrom tfmann import nmt\n"
        f"status = nmt.main({argv!r})\n"
        "late = {'tensorflow', 'numpy', 'matplotlib'} & set(sys.modules)\n"
        "sys.exit(99 if late else status)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, cwd=ROOT)
    assert done.returncode == status, done.stderr
    assert (done.stderr == b"") == (status == 0)
    assert done.stderr.count(b"\n") <= 1


def test_help_names_every_flag_with_its_default(capsys):
    assert nmt.main(["--help"]) == 0
    shown = capsys.readouterr().out
    for name, field in hparams_module.FIELDS.items():
        assert f"--{name}: " in shown and field.help in shown, name
    for name in ("out_dir", "hparams_path", "mode", "ckpt", "alignment_file"):
        assert f"--{name}: " in shown
    assert "--num_units: Width U of every recurrent layer. (default: 32)" in shown


@pytest.mark.parametrize(
    "argv, words",
    [
        (["--num_unit=3"], "num_unit.*num_units"),
        (["--outdir=x"], "outdir.*out_dir"),
        (["--beam_width"], "beam_width"),
        (["--num_units=3.5"], "num_units"),
        (["--num_units=0"], "num_units: 0 is below the least value 1"),
        (["--dropout=1.2"], "dropout: 1.2 is above the greatest value 1"),
        (["--dropout=nan"], "dropout: expected a finite number"),
        (["--share_vocab=perhaps"], "share_vocab"),
        (["--cell=lstm"], "cell.*lstm.*luong"),
        (["--mode=translate"], "mode.*translate.*infer"),
        (["file.json"], "what is 'file.json'"),
        ([], "--out_dir is not given"),
        (["--mode=train"], "--out_dir is not given"),
        (["--out_dir=x", "--mode=infer"], "needs --inference_input_file"),
        (["--out_dir=x", "--mode=score", "--inference_input_file=y"], "--inference_ref_file"),
        (["--out_dir=x", "--mode=align", "--inference_input_file=y"], "--inference_ref_file"),
        (
            ["--out_dir=x", "--inference_input_file=y", "--inference_output_file=z",
             "--alignment_file=z"],
            "are the same file",
        ),
        (["--out_dir=x", "--hparams_path=absent.json"], "cannot read the hparams file absent.json"),
        (["--out_dir=x", "--infer_mode=greedy", "--num_translations_per_input=2"], "needs infer_m"),
        (["--flagfile=absent"], "absent"),
    ],
)  # fmt: skip
def test_usage_errors(argv, words, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fails(argv, capsys, 2, words)
    assert tree(tmp_path) == {}


@pytest.mark.parametrize(
    "content, words",
    [
        ('{"num_unit": 3}', "unknown key 'num_unit'; did you mean 'num_units'"),
        ('{"num_units": "3"}', "num_units: expected int, got '3'"),
        ('{"dropout": 3}', "dropout: 3.0 is above the greatest"),
        ("[1]", "expected one flat JSON object"),
        ("{", "is not JSON"),
        ('{"encoder_type": "bi", "num_layers": 3}', "give an even number"),
    ],
)
def test_wrong_settings_files(content, words, capsys, tmp_path):
    path = tmp_path / "h.json"
    path.write_text(content)
    before = tree(tmp_path)
    fails(command(tmp_path / "out", hparams_path=path), capsys, 2, rf"h\.json.*{words}")
    assert tree(tmp_path) == before


def test_help_into_a_closed_pipe_says_nothing():
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "tfmann.nmt", "--help"],
        stdout=writing, stderr=subprocess.PIPE, cwd=ROOT,
    )  # fmt: skip
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, b"")


def test_output_that_cannot_be_written_is_one_message():
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "tfmann.nmt", "--help"],
            stdout=full, stderr=subprocess.PIPE, cwd=ROOT,
        )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.startswith(b"tfmann: ") and done.stderr.count(b"\n") == 1


def test_a_pipe_is_written_to_and_not_replaced(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    got = []
    reader = threading.Thread(target=lambda: got.append(path.read_bytes()), daemon=True)
    reader.start()
    files.write_lines(path, ["a", "b"])
    reader.join(timeout=60)
    assert got == [b"a\nb\n"]
    assert path.is_fifo() and os.listdir(tmp_path) == ["pipe"]


def test_a_link_to_a_file_stays_one(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "file")
    files.write_lines(tmp_path / "link", ["a"])
    assert (tmp_path / "link").is_symlink() and (tmp_path / "file").read_text() == "a\n"


# --- training on what cannot be trained on ----------------------------------------------------


def write_corpus(folder):
    """A corpus of 12 invented pairs, and broken copies of its parts."""
    stream = np.random.default_rng(1)
    source = [" ".join(stream.choice(WORDS, stream.integers(1, 6))) for _ in range(12)]
    target = [" ".join(reversed(line.split())).upper() for line in source]
    for name, suffixes in {"train": ("",), "dev": ("0", "1"), "test": ("",)}.items():
        files.write_lines(folder / f"{name}.src", source)
        for suffix in suffixes:
            files.write_lines(folder / f"{name}.tgt{suffix}", target)

    def pair(name, source_bytes, target_bytes):
        (folder / f"{name}.src").write_bytes(source_bytes)
        (folder / f"{name}.tgt").write_bytes(target_bytes)

    pair("unequal", b"a b\nc\n", b"x\n")
    pair("empty", b"", b"")
    pair("blank", b"a b\nc\n", b"\n \n")
    pair("latin", b"a b\nc\n", b"x\n\xe9t\xe9\n")
    pair("vocab_plain", b"der\nhund\n", SPECIALS.encode())
    pair("vocab_half", SPECIALS.encode() + b"der\n", b"<unk>\nDER\n")
    pair("two", b"a b\nc\n", b"x\ny\n")
    (folder / "two.tgt").rename(folder / "two.tgt0")
    (folder / "two.tgt1").write_bytes(b"x\n")
    pair("documents", b"a b\nc\n", b"x y\nz\n")
    (folder / "documents.docs").write_bytes(b"1\n")
    (folder / "is_a_file").write_bytes(b"")


TRAINING = {
    "src": "src", "tgt": "tgt", "num_units": 4, "num_layers": 1, "batch_size": 4,
    "num_train_steps": 2, "steps_per_stats": 1, "steps_per_external_eval": 2,
    "tgt_max_len_infer": 4, "infer_mode": "greedy", "num_attention_images": 0,
}  # fmt: skip


def training(corpus, out, *flags, **changes):
    own = {f"{name}_prefix": corpus / name for name in ("train", "dev", "test")}
    settings = {**TRAINING, **own, **changes}
    return command(out, *flags, **{k: v for k, v in settings.items() if v is not None})


# what is wrong, the settings that are (with {} for the corpus), status, words of the message
BROKEN = [
    ("no source suffix", {"src": None}, 2, "src is not given"),
    ("one suffix twice", {"tgt": "src"}, 2, "src and tgt are both 'src'"),
    ("no training text", {"train_prefix": None}, 2, "train_prefix is not given"),
    ("no dev text", {"dev_prefix": None}, 2, "dev_prefix is not given"),
    ("missing train", {"train_prefix": "{}/absent"}, 1, r"no file .*/absent\.src"),
    ("missing dev", {"dev_prefix": "{}/absent"}, 1, r"neither .*/absent\.tgt nor .*absent\.tgt0"),
    ("missing test", {"test_prefix": "{}/absent"}, 1, r"neither .*/absent\.tgt nor"),
    ("missing vocabulary", {"vocab_prefix": "{}/absent"}, 1, r"no such file: .*/absent\.src"),
    ("unequal", {"train_prefix": "{}/unequal"}, 1, r"unequal\.src has 2, .*unequal\.tgt has 1"),
    ("unequal dev", {"dev_prefix": "{}/unequal"}, 1, "unequal line counts"),
    ("unequal test", {"test_prefix": "{}/unequal"}, 1, "unequal line counts"),
    ("unequal references", {"test_prefix": "{}/two"}, 1, r"two\.src has 2, .*two\.tgt1 has 1"),
    ("not UTF-8 test", {"test_prefix": "{}/latin"}, 1, r"latin\.tgt, line 2: not UTF-8"),
    ("empty", {"train_prefix": "{}/empty"}, 1, "no token is left"),
    ("empty dev", {"dev_prefix": "{}/empty"}, 1, "there is no sentence pair"),
    ("blank", {"train_prefix": "{}/blank"}, 1, "no token is left"),
    (
        "blank, with a vocabulary",
        {"train_prefix": "{}/blank", "vocab_prefix": "{}/vocab_good"},
        1,
        "no training pair is left: 2 pairs; 2 with an empty side",
    ),
    ("not UTF-8", {"train_prefix": "{}/latin"}, 1, r"latin\.tgt, line 2: not UTF-8"),
    ("documents", {"train_prefix": "{}/documents"}, 1, r"documents\.docs has 1"),
    ("no specials", {"vocab_prefix": "{}/vocab_plain"}, 1, r"vocab_plain\.src lacks <unk>"),
    ("few specials", {"vocab_prefix": "{}/vocab_half"}, 1, r"vocab_half\.tgt lacks <s>, </s>"),
    ("tiny vocabulary", {"vocab_size": 3}, 1, "no token is left for the vocabulary"),
    (
        "all too long",
        {"max_len_policy": "filter", "src_max_len": 1, "train_prefix": "{}/long"},
        1,
        "no training pair is left",
    ),
    ("codes for words", {"subword_model": "{}/train.src"}, 2, "needs subword_option"),
    (
        "missing codes",
        {"subword_option": "bpe", "subword_model": "{}/absent"},
        1,
        "no such file: .*absent",
    ),
    ("nothing to start from", {"init_checkpoint": "{}/absent"}, 1, "absent/state.json is missing"),
]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    write_corpus(folder)
    for side, words in (("src", WORDS), ("tgt", [word.upper() for word in WORDS])):
        Vocabulary.of(words).save(folder / f"vocab_good.{side}")
        files.write_lines(folder / f"long.{side}", ["der hund"])
    return folder


def broken_settings(corpus, changes):
    return {
        key: value.format(corpus) if isinstance(value, str) else value
        for key, value in changes.items()
    }


@pytest.mark.parametrize("changes, status, words", [case[1:] for case in BROKEN],
                         ids=[case[0] for case in BROKEN])  # fmt: skip
def test_training_that_cannot_begin(corpus, tmp_path, capsys, changes, status, words):
    before = tree(corpus)
    out = tmp_path / "out"
    argv = training(corpus, out, num_units=7, **broken_settings(corpus, changes))
    fails(argv, capsys, status, words)
    assert tree(corpus) == before
    left = {name for name in tree(out) if not name.endswith(("train.log", "lock"))}
    allowed = ("checkpoints", "encoded")
    assert all(Path(name).relative_to(out).parts[0] in allowed for name in left), left
    nmt.settings_for_training(str(out), None, {"num_units": 5, "cell": "rnnsearch"})


@pytest.mark.parametrize("place", ["is_a_file", "is_a_file/below"])
def test_an_out_dir_that_cannot_be_used(corpus, capsys, place):
    before = tree(corpus)
    fails(training(corpus, corpus / place), capsys, 1, f"out_dir .*{place} cannot be used")
    assert tree(corpus) == before


def test_a_vocabulary_of_somebody_else_is_not_replaced(corpus, tmp_path, capsys):
    (tmp_path / "vocab.tgt").write_text("</s>\n<s>\n<unk>\nDER\n")
    fails(training(corpus, tmp_path), capsys, 1, r"vocab\.tgt belongs to no run")
    assert (tmp_path / "vocab.tgt").read_text() == "</s>\n<s>\n<unk>\nDER\n"
    assert not (tmp_path / "vocab.src").exists() and not (tmp_path / "hparams.json").exists()


def test_a_second_process_is_kept_out(corpus, tmp_path, capsys):
    from tfmann.folder import RunFolder

    with RunFolder(str(tmp_path / "out"), print):
        fails(training(corpus, tmp_path / "out"), capsys, 1, "another process is training in")


@pytest.fixture(scope="module")
def trained(corpus, tmp_path_factory):
    """A model trained in a folder in which every command of BROKEN had failed before."""
    out = tmp_path_factory.mktemp("trained") / "out"
    for _, changes, status, _ in BROKEN:
        wrong = broken_settings(corpus, {"num_units": 7, "cell": "ntm_attention", **changes})
        assert nmt.main(training(corpus, out, **wrong)) == status
    assert nmt.main(training(corpus, out)) == 0
    return out


def test_the_corrected_command_works_after_every_failure(trained, corpus):
    saved = hparams_module.read_json(trained / "hparams.json")
    assert (saved["num_units"], saved["cell"]) == (4, "luong")
    assert saved["vocab_prefix"] is None and saved["train_prefix"] == str(corpus / "train")
    for side in ("src", "tgt"):
        words = (corpus / f"train.{side}").read_text(encoding="utf-8").split()
        assert set(Vocabulary.load(trained / f"vocab.{side}").tokens[3:]) == set(words)
    results = json.loads((trained / "results.json").read_text())
    assert results["steps"] == 2 and results["hparams"] == saved
    assert checkpoint.steps(str(trained / "checkpoints")) == [2]
    references = {name: scores[0]["signature"] for name, scores in results["best"].items()}
    assert "nrefs:2" in references["dev"] and "nrefs:1" in references["test"]


@pytest.mark.parametrize(
    "changes, status, words",
    [
        ({"num_units": 5}, 2, r"num_units=5 \(saved: 4\)"),
        ({"cell": "rnnsearch", "num_layers": 2}, 2, "cell='rnnsearch'.*num_layers=2"),
        ({"optimizer": "adam"}, 1, "the optimizer of .* is another model's"),
        ({"train_prefix": "{}/unequal"}, 1, "unequal line counts"),
        ({"dev_prefix": "{}/latin"}, 1, "not UTF-8"),
    ],
)
def test_a_trained_model_stays_as_it_is(trained, corpus, capsys, changes, status, words):
    before = tree(corpus, trained)
    fails(training(corpus, trained, **broken_settings(corpus, changes)), capsys, status, words)
    after = tree(corpus, trained)
    log = str(trained / "train.log")
    assert {name for name in before | after if before.get(name) != after.get(name)} <= {log}


def test_settings_of_a_trained_model_need_not_be_given_again(trained, corpus):
    saved = hparams_module.read_json(trained / "hparams.json")
    again = nmt.settings_for_training(str(trained), None, {"learning_rate": 0.5})
    assert again.as_dict() == {**saved, "learning_rate": 0.5}


def test_what_was_not_trained_binds_nobody(trained, corpus, tmp_path):
    """Killed after its settings were written, before its first checkpoint."""
    out = tmp_path / "out"
    (out / "checkpoints" / "step-00000001.tmp77").mkdir(parents=True)
    saved = hparams_module.HParams(num_units=9, src="src", tgt="tgt", vocab_size=5)
    hparams_module.save(saved, out / "hparams.json")
    (out / "vocab.src").write_text(SPECIALS + "stale\n")
    made = nmt.settings_for_training(str(out), None, {"src": "src", "tgt": "tgt"})
    assert (made.num_units, made.vocab_size) == (32, 0)
    made = made.replace(train_prefix=str(corpus / "train"))
    languages = text.settle_vocabularies(made, str(out), lambda message: None)
    assert "stale" not in languages.source.vocabulary
    text.save_languages(languages, made, str(out))
    assert "stale" not in (out / "vocab.src").read_text(encoding="utf-8")
    assert text.load_languages(made, str(out)).source.vocabulary == languages.source.vocabulary


# --- with a model -----------------------------------------------------------------------------

LINES = ["der hund", "", "größe một chó", "unbekannt der", "die\u2028katze 。 und", "hund"]
CAP = 7


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model of large random weights in a folder as training leaves it."""
    folder = tmp_path_factory.mktemp("model")
    target = [word.upper() for word in WORDS]
    h = small.hparams("luong", src="src", tgt="tgt", tgt_max_len_infer=CAP, infer_batch_size=4)
    h = h.replace(infer_mode="beam_search", beam_width=3)
    segmenter = make_segmenter("")
    sides = [text.Side(Vocabulary.of(words), segmenter) for words in (WORDS, target)]
    languages = text.Languages(*sides)
    from tfmann.models.seq2seq import Seq2Seq

    built = Seq2Seq(h, *(len(side.vocabulary) for side in languages))
    named = checkpoint.by_name(built.trainable_variables)
    arrays = {name: variable.numpy() for name, variable in named.items()}
    text.save_languages(languages, h, str(folder))
    hparams_module.save(h, folder / "hparams.json")
    checkpoint.write(str(folder / "best_bleu"), arrays, None, {})
    return folder


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "in"
    path.write_bytes("\ufeffder hund\r\n\n".encode() + "\n".join(LINES[2:]).encode())
    return path


@pytest.fixture(scope="module")
def translations(model, tmp_path_factory):
    """Best and 3-best translations of LINES, with alignments, as files."""
    folder = tmp_path_factory.mktemp("translations")
    files.write_lines(folder / "in", LINES)
    (folder / "best").write_text("old\n")
    for name, count in (("best", 1), ("nbest", 3)):
        argv = command(
            model, inference_input_file=folder / "in", inference_output_file=folder / name,
            alignment_file=folder / f"{name}.align", num_translations_per_input=count,
        )  # fmt: skip
        assert nmt.main(argv) == 0
    return {
        path.name: path.read_bytes().decode("utf-8").split("\n")[:-1] for path in folder.iterdir()
    }


def test_translations_keep_lines_and_order(translations):
    assert set(translations) == {"in", "best", "best.align", "nbest", "nbest.align"}
    best = translations["best"]
    assert len(best) == len(LINES)
    assert best[1] == "" and all(line for line in best[2:])
    for line in best:
        assert set(line.split()) <= {word.upper() for word in WORDS} | {"<unk>"}
    assert len(set(best)) > 3, "the model says one thing to everything: it tests no order"


def test_an_n_best_list_is_numbered_scored_and_begins_with_the_best(translations):
    rows = [line.split(" ||| ") for line in translations["nbest"]]
    assert [int(row[0]) for row in rows] == [i for i in range(len(LINES)) for _ in range(3)]
    for number in range(len(LINES)):
        three = rows[3 * number : 3 * number + 3]
        scores = [float(score) for *_, score in three]
        assert scores == sorted(scores, reverse=True)
        assert three[0][1] == translations["best"][number]
        if LINES[number]:
            assert len({hypothesis for _, hypothesis, _ in three}) == 3
            assert all(re.fullmatch(r"-\d+\.\d{6}", score) for *_, score in three)
        else:
            assert [row[1:] for row in three] == [["", "0.000000"]] * 3


def test_alignments_are_pharaoh_lines_one_a_translation(translations):
    for name in ("best", "nbest"):
        assert len(translations[f"{name}.align"]) == len(translations[name])
    for source, hypothesis, line in zip(
        LINES, translations["best"], translations["best.align"]
    ):
        links = [tuple(map(int, link.split("-"))) for link in line.split()]
        assert [t for _, t in links] == sorted({t for _, t in links})
        # U+2028 does not part words, and a link may fall on </s>, which is no word
        assert all(0 <= s < len(source.split(" ")) for s, _ in links)
        assert all(0 <= t < len(hypothesis.split()) for _, t in links)
        assert bool(links) <= bool(source)
    assert translations["nbest.align"][::3] == translations["best.align"]


def test_scores_and_alignments_of_the_best_come_back_when_forced(translations, model, tmp_path):
    """Two roads: what the search says of its translation, and the forced decoding of it."""
    rows = [line.split(" ||| ") for line in translations["nbest"]]
    ended = [
        i for i, row in enumerate(rows) if LINES[int(row[0])] and len(row[1].split()) < CAP
    ]
    assert len(ended) > 5
    files.write_lines(tmp_path / "s", [LINES[int(rows[i][0])] for i in ended])
    files.write_lines(tmp_path / "t", [rows[i][1] for i in ended])
    got = {}
    for mode in ("score", "align"):
        argv = command(
            model, mode=mode, inference_input_file=tmp_path / "s",
            inference_ref_file=tmp_path / "t", inference_output_file=tmp_path / mode,
        )  # fmt: skip
        assert nmt.main(argv) == 0
        got[mode] = (tmp_path / mode).read_text().split("\n")[:-1]
    np.testing.assert_allclose(
        np.array(got["score"], float), [float(rows[i][2]) for i in ended], atol=1e-4
    )
    assert got["align"] == [translations["nbest.align"][i] for i in ended]


def test_standard_input_gives_what_a_file_gives(
    translations, model, source, monkeypatch, capsysbinary
):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(source.read_bytes())))
    assert nmt.main(command(model, inference_input_file="-")) == 0
    out, err = capsysbinary.readouterr()
    assert out.decode("utf-8").split("\n")[:-1] == translations["best"]
    assert err.decode().startswith("weights of ") and err.count(b"\n") == 1


def test_eval_scores_against_the_references(translations, model, tmp_path, capsys):
    files.write_lines(tmp_path / "s", LINES)
    files.write_lines(tmp_path / "t", translations["best"])
    out = tmp_path / "scores"
    flags = {"mode": "eval", "inference_input_file": tmp_path / "s"}
    flags["inference_ref_file"] = tmp_path / "t"
    assert nmt.main(command(model, inference_output_file=out, **flags)) == 0
    found = json.loads(out.read_text())
    assert found["checkpoint"] == str(model / "best_bleu")
    bleu, chrf, ter = found["scores"]["input"]
    assert bleu["value"] > 99.99 and "tok:none" in bleu["signature"]
    assert chrf["value"] > 99.99 and ter["value"] == 0

    files.write_lines(tmp_path / "t", translations["best"][:-1])
    before = tree(tmp_path, model)
    fails_after_note(command(model, inference_output_file=out, **flags), capsys, 1, "6.*5|5.*6")
    assert tree(tmp_path, model) == before


def fails_after_note(argv, capsys, status, words):
    """As `fails`, for a command that says before which weights it takes."""
    capsys.readouterr()
    assert nmt.main(argv) == status
    *notes, message = capsys.readouterr().err.splitlines()
    assert message.startswith("tfmann: ") and re.search(words, message), message
    assert all("weights of" in note or "falling back" in note for note in notes), notes


@pytest.mark.parametrize(
    "flags, status, words",
    [
        ({"inference_input_file": "{0}/absent"}, 1, "no such file: .*absent"),
        ({"inference_input_file": "{0}"}, 1, "is a directory"),
        ({"inference_input_file": "{0}/latin"}, 1, "latin, line 2: not UTF-8"),
        ({"inference_output_file": "{0}/absent/out"}, 1, "cannot write .*absent/out"),
        ({"alignment_file": "{0}/absent/out"}, 1, "cannot write .*absent/out"),
        ({"ckpt": "{0}/absent"}, 1, "absent/state.json is missing or damaged"),
        ({"mode": "score", "inference_ref_file": "{0}/short"}, 1, "unequal line counts"),
        ({"mode": "align", "inference_ref_file": "{0}/absent"}, 1, "no such file"),
        ({"mode": "score", "inference_ref_file": "{0}/in", "inference_input_file": "-"}, 2, "two"),
        ({"mode": "eval"}, 2, "needs --inference_ref_file"),
        ({"num_units": 9}, 2, r"num_units=9 \(saved: 8\)"),
        ({"beam_width": 1, "num_translations_per_input": 2}, 2, "is more than beam_width=1"),
        ({"out_dir": "{0}"}, 1, "holds no trained model"),
    ],
)
def test_a_model_that_is_asked_for_the_impossible(
    model, source, tmp_path, capsys, flags, status, words
):
    (tmp_path / "out").write_text("old\n")
    (tmp_path / "latin").write_bytes(b"der\n\xff\n")
    (tmp_path / "short").write_text("DER\n")
    given = {"out_dir": model, "inference_input_file": source,
             "inference_output_file": tmp_path / "out"}  # fmt: skip
    given.update({k: v.format(tmp_path) if isinstance(v, str) else v for k, v in flags.items()})
    before = tree(tmp_path, model)
    fails_after_note([f"--{k}={v}" for k, v in given.items()], capsys, status, words)
    assert tree(tmp_path, model) == before


def test_checkpoints_that_cannot_be_used(model, trained, source, tmp_path, capsys):
    """Another model's, a damaged best one (falls back to the last), and none at all."""
    argv = command(model, inference_input_file=source, ckpt=trained / "best_bleu")
    fails(argv, capsys, 1, "trained/?.*best_bleu is another model's: ")

    copy = tmp_path / "copy"
    for path in sorted(model.rglob("*")):
        place = copy / path.relative_to(model)
        place.parent.mkdir(parents=True, exist_ok=True)
        if path.is_file():
            place.write_bytes(path.read_bytes())
    weights = copy / "best_bleu" / "weights.npz"
    good = weights.read_bytes()
    weights.write_bytes(good[:-100] + bytes(100))
    argv = command(copy, inference_input_file=source, inference_output_file=tmp_path / "out")
    fails(argv, capsys, 1, "holds no checkpoint yet .*weights.npz is not as it was written")
    assert not (tmp_path / "out").exists()

    state = checkpoint.read_state(str(model / "best_bleu"))
    arrays = checkpoint.read_arrays(str(model / "best_bleu"))
    del state["sha256"]
    checkpoint.write(str(copy / "checkpoints" / "step-00000003"), arrays, None, state)
    from tfmann import api

    said = []
    assert api.load(str(copy), log=said.append).checkpoint.endswith("step-00000003")
    assert "falling back" in said[0]


def in_a_process(argv, **how):
    """Runs a command line in a process of its own, in the plainest locale."""
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "LC_ALL": "C"}
    environment.pop("PYTHONIOENCODING", None)
    return subprocess.run(
        [sys.executable, "-m", "tfmann.nmt", *argv],
        stderr=subprocess.PIPE, cwd=ROOT, env=environment, **how,
    )  # fmt: skip


def test_text_is_utf8_in_any_locale(translations, model, source):
    done = in_a_process(
        command(model, inference_input_file="-"), input=source.read_bytes(), stdout=subprocess.PIPE
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.decode("utf-8").split("\n")[:-1] == translations["best"]
    assert done.stderr.count(b"\n") == 1, done.stderr


def test_a_reader_that_goes_away_is_no_error_of_ours(model, source, tmp_path):
    reading, writing = os.pipe()
    os.close(reading)
    links = tmp_path / "links"
    argv = command(model, inference_input_file=source, alignment_file=links)
    done = in_a_process(argv, stdout=writing)
    os.close(writing)
    assert done.returncode == 1 and os.listdir(tmp_path) == ["in"]
    assert done.stderr.startswith(b"weights of ") and done.stderr.count(b"\n") == 1, done.stderr


def test_a_word_that_the_terminal_cannot_show_stops_no_training(corpus, tmp_path, monkeypatch):
    """Here in the name of a file that is logged before the text in it is refused."""
    folder = tmp_path / "größe"
    folder.mkdir()
    for side in ("src", "tgt"):
        (folder / f"t.{side}").write_bytes((corpus / f"unequal.{side}").read_bytes())
    shown = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", shown)
    assert nmt.main(training(corpus, tmp_path / "out", train_prefix=folder / "t")) == 1
    shown.flush()
    assert b"encoding " in shown.buffer.getvalue() and b"gr\\xf6\\xdfe" in shown.buffer.getvalue()
    assert "größe" in (tmp_path / "out" / "train.log").read_text(encoding="utf-8")


def test_an_interrupted_translation_leaves_the_old_file(model, tmp_path, monkeypatch, capsys):
    from tfmann import api

    def interrupted(self, lines, **how):
        next(iter(lines))
        raise KeyboardInterrupt

    monkeypatch.setattr(api.Model, "translate", interrupted)
    files.write_lines(tmp_path / "in", LINES)
    (tmp_path / "out").write_text("old\n")
    before = tree(tmp_path)
    argv = command(
        model, inference_input_file=tmp_path / "in", inference_output_file=tmp_path / "out"
    )
    assert nmt.main(argv) == 130
    assert capsys.readouterr().err.endswith("tfmann: interrupted\n")
    assert tree(tmp_path) == before
