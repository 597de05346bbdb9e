"""A user's own text, prepared: what is written, what a run takes, and what is refused."""

import gzip
import json
import os
import re
import shlex

import pytest

from tfmann import config, nmt, synthetic
from tfmann.cli import prepare
from tfmann.data import run_vocabularies
from tfmann.datasets import corpus_record, raw_corpus
from tfmann.errors import UserError
from tfmann.utils import resources


@pytest.fixture
def raw(tmp_path):
    """Raw text in the folder `raw`, with documents of the training text."""
    folder = tmp_path / "raw"
    synthetic.write_corpus(str(folder), train=200, dev=10, test=10, seed=1)
    return folder


def command(raw, output, *more):
    files = [f"--{split}_prefix={raw / split}" for split in ("train", "dev", "test")]
    return ["--src=src", "--tgt=tgt", *files, f"--output={output}", *more]


def lines(path):
    return path.read_text("utf-8").splitlines()


def run_settings(output):
    return config.HParams(**corpus_record.load_settings(str(output)))


@pytest.mark.parametrize(
    "more", [("--subwords=spm", "--vocab_size=60"),
             ("--subwords=bpe", "--vocab_size=40", "--tokenizer=none"),
             ("--subwords=words", "--tokenizer=none", "--vocab_size=0"),
             ("--subwords=bpe", "--vocab_size=40"), ("--subwords=words", "--vocab_size=0")],
    ids=["spm", "bpe", "words", "bpe-moses", "words-moses"],
)  # fmt: skip
def test_a_run_takes_the_folder_as_it_is(raw, tmp_path, more, capsys):
    output = tmp_path / "out"
    assert prepare.main(command(raw, output, *more)) == 0
    settings = run_settings(output)
    languages = run_vocabularies.load_or_build(settings, str(tmp_path / "run"))
    for side, suffix in zip(languages, ("src", "tgt")):
        for line in lines(output / f"dev.{suffix}"):
            text = line if settings.tokenizer == "" else line.replace(" .", ".")
            assert side.decode(side.encode(line)) == text or 0 in side.encode(line)
    assert settings.bleu_tokenize == ("none" if "--tokenizer=none" in more else "13a")
    assert settings.tokenizer == ("moses" if len(more) == 2 and "spm" not in more[0] else "")
    record = json.loads((output / corpus_record.RECORD).read_text("utf-8"))
    sizes = {name: len(lines(output / f"{name}.src")) for name in ("train", "dev", "test")}
    assert sizes == {name: split["pairs"] for name, split in record["splits"].items()}
    ids = [i for line in lines(output / "dev.tgt") for i in languages.target.encode(line)]
    counts = record["splits"]["dev"]["sides"]["tgt"]
    assert counts["tokens"] == len(ids) and counts["vocabulary"] == len(languages.target.vocabulary)
    assert counts["unknown_percent"] == round(100 * ids.count(0) / len(ids), 3)
    printed = capsys.readouterr().out
    assert f"tgt {len(ids):,} tokens" in printed
    [suggested] = re.findall(r"^ready: tfmann train (.*)$", printed, re.MULTILINE)
    values, _ = nmt.parse(shlex.split(suggested))
    assert not values.bleu_lowercase, "the text is as it was given"
    assert values.data == str(output) and resources.settings_path(values.hparams_path)


def test_the_suggested_command_has_a_development_set(raw, tmp_path, capsys):
    argv = [flag for flag in command(raw, tmp_path / "out") if "dev_prefix" not in flag]
    assert prepare.main([*argv, "--vocab_size=60"]) == 0
    [suggested] = re.findall(r"^ready: tfmann train (.*)$", capsys.readouterr().out, re.MULTILINE)
    assert "--dev_prefix=PREFIX" in suggested.split()


def test_special_symbols_in_the_text_are_unknown_as_they_are_to_a_run(raw, tmp_path):
    (raw / "dev.src").write_text("<s> <unk>\n" + "</s>\n" * 9, "utf-8")
    argv = command(raw, tmp_path / "out", "--subwords=words", "--tokenizer=none")
    assert prepare.main(argv) == 0
    counts = corpus_record.read_record(str(tmp_path / "out"))["splits"]["dev"]["sides"]["src"]
    assert (counts["tokens"], counts["unknown_percent"]) == (11, 100)


def test_packed_text_is_read(raw, tmp_path):
    expected = {}
    for suffix in ("src", "tgt", "docs"):
        plain = raw / f"train.{suffix}"
        expected[suffix] = plain.read_bytes()
        (raw / f"train.{suffix}.gz").write_bytes(gzip.compress(expected[suffix]))
        plain.unlink()
        if suffix != "src":
            assert prepare.main(command(raw, tmp_path / "out", "--vocab_size=60")) == 0
            assert (tmp_path / "out" / "train.tgt").read_bytes() == expected["tgt"]
    assert (tmp_path / "out" / "train.docs").read_bytes() == expected["docs"]


def test_documents_stay_with_their_sentences(raw, tmp_path):
    sides = [lines(raw / f"train.{suffix}") for suffix in ("src", "tgt", "docs")]
    sides[0][3] = ""
    (raw / "train.src").write_text("\n".join(sides[0]) + "\n", encoding="utf-8")
    assert prepare.main(command(raw, tmp_path / "out", "--vocab_size=60")) == 0
    rows = list(zip(*(lines(tmp_path / "out" / f"train.{s}") for s in ("src", "tgt", "docs"))))
    expected = list(zip(*sides))
    assert rows == expected[:3] + expected[4:]


def test_documents_of_earlier_text_go_even_if_its_record_is_lost(raw, tmp_path):
    output = tmp_path / "out"
    assert prepare.main(command(raw, output, "--vocab_size=60")) == 0
    (output / corpus_record.RECORD).unlink()  # as the message about a damaged one says
    (raw / "train.docs").unlink()
    assert prepare.main(command(raw, output, "--vocab_size=60")) == 0
    assert not (output / "train.docs").exists()


def test_the_same_command_again_does_nothing_and_another_starts_over(raw, tmp_path, capsys):
    output = tmp_path / "out"
    arguments = command(raw, output, "--vocab_size=60")
    assert prepare.main(arguments) == 0
    stamp = os.stat(output / "spm.model").st_mtime_ns
    assert prepare.main(arguments) == 0
    assert os.stat(output / "spm.model").st_mtime_ns == stamp
    assert "already" in capsys.readouterr().out
    assert prepare.main([*arguments, "--drop_duplicates"]) == 0
    assert os.stat(output / "spm.model").st_mtime_ns != stamp
    for suffix, line in (("src", "more"), ("tgt", "more"), ("docs", "7")):
        with (raw / f"dev.{suffix}").open("a", encoding="utf-8") as stream:
            stream.write(f"{line}\n")
    assert prepare.main(arguments) == 0
    assert lines(output / "dev.src")[-1] == "more"


@pytest.mark.parametrize("is_interrupted", [False, True])
def test_documents_and_splits_that_are_gone_do_not_stay(raw, tmp_path, monkeypatch, is_interrupted):
    output = tmp_path / "out"
    options = ("--subwords=words", "--tokenizer=none")
    assert prepare.main(command(raw, output, *options)) == 0
    assert (output / "train.docs").exists() and (output / "test.src").exists()
    (output / "mine.txt").write_text("a file of the user", "utf-8")
    if is_interrupted:
        with monkeypatch.context() as patch:
            patch.setattr(raw_corpus, "_learn", _raise)
            assert prepare.main(command(raw, output, *options, "--drop_duplicates")) == 1
    (raw / "train.docs").unlink()
    src, tgt, train, dev, _, folder = command(raw, output)
    for more in ((), ("--drop_duplicates",)):  # the record that the second replaces lists all files
        assert prepare.main([src, tgt, train, dev, folder, *options, *more]) == 0
    assert not (output / "train.docs").exists()
    assert is_interrupted or not (output / "test.src").exists()
    assert (output / "mine.txt").exists()


@pytest.mark.parametrize("name", ["train.tgt", "bpe.codes"])
def test_what_was_changed_afterwards_is_refused_and_prepared_again(raw, tmp_path, capsys, name):
    output = tmp_path / "out"
    argv = command(raw, output, "--subwords=bpe", "--vocab_size=40", "--tokenizer=none")
    assert prepare.main(argv) == 0
    changed = output / name
    whole = changed.read_bytes()
    for damage in (lambda: changed.write_bytes(whole[: len(whole) // 2]), changed.unlink):
        damage()
        with pytest.raises(UserError, match=f"{re.escape(str(changed))} is not what"):
            corpus_record.load_settings(str(output))
        capsys.readouterr()
        assert prepare.main(argv) == 0
        assert f"{changed} is not what" in capsys.readouterr().out
        assert changed.read_bytes() == whole


def test_a_text_in_the_folder_that_is_written_is_not_lost(raw, tmp_path, capsys):
    output = tmp_path / "out"
    options = ("--subwords=words", "--tokenizer=none")
    argv = command(raw, output, *options)
    assert prepare.main(argv) == 0
    before = {path.name: path.read_bytes() for path in output.iterdir()}
    here = [flag.replace(f"{raw}/test", f"{output}/test") for flag in argv]
    assert here != argv and prepare.main([*here, "--drop_duplicates"]) == 2
    assert f"{output}/test.src is in the folder that is written" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in output.iterdir()} == before


def test_a_link_to_a_text_in_the_folder_is_refused_too(raw, tmp_path, capsys):
    output = tmp_path / "out"
    argv = command(raw, output, "--subwords=words", "--tokenizer=none")
    assert prepare.main(argv) == 0
    before = (output / "train.src").read_bytes()
    (raw / "train.src").unlink()
    (raw / "train.src").symlink_to(output / "train.src")
    assert prepare.main([*argv, "--drop_duplicates"]) == 2
    assert f"{raw}/train.src is in the folder that is written" in capsys.readouterr().err
    assert (output / "train.src").read_bytes() == before


def test_what_the_user_puts_into_the_folder_is_not_of_the_corpus(raw, tmp_path):
    output = tmp_path / "out"
    options = ("--subwords=words", "--tokenizer=none")
    assert prepare.main(command(raw, output, *options)) == 0
    (output / "run").mkdir()
    (output / "run" / "train.log").write_text("step 1\n", "utf-8")
    (output / "notes").write_text("first\n", "utf-8")
    assert prepare.main(command(raw, output, *options, "--drop_duplicates")) == 0
    (output / "notes").write_text("second\n", "utf-8")
    assert corpus_record.load_settings(str(output))["src"] == "src"
    assert (output / "run" / "train.log").exists()
    files = set(corpus_record.read_record(str(output))["files"])
    assert files == {path.name for path in output.iterdir()} - {"run", "notes", "data.json",
                                                               ".prepared"}  # fmt: skip


@pytest.mark.parametrize("name", ["dev.src", "dev.docs", "spm.model"])
def test_what_the_user_puts_into_the_folder_is_not_replaced(raw, tmp_path, capsys, name):
    output = tmp_path / "out"
    words = command(raw, output, "--subwords=words", "--tokenizer=none")
    without_dev = [flag for flag in words if not flag.startswith("--dev_prefix")]
    assert prepare.main(without_dev) == 0
    (output / name).write_text("mine\n", "utf-8")
    capsys.readouterr()
    again = command(raw, output, "--vocab_size=60") if name == "spm.model" else words
    assert prepare.main(again) == 2
    printed = capsys.readouterr().err
    assert f"{output / name} is not a file that `tfmann prepare` wrote" in printed
    assert (output / name).read_text("utf-8") == "mine\n"
    assert corpus_record.load_settings(str(output))["src"] == "src", "as it was prepared before"


def test_what_an_earlier_version_prepared_is_prepared_again(raw, tmp_path, capsys):
    output = tmp_path / "out"
    arguments = command(raw, output, "--vocab_size=60")
    assert prepare.main(arguments) == 0
    record = json.loads((output / "data.json").read_text("utf-8"))
    assert record.pop("rules") == 2
    for words, stays in (("what an earlier `tfmann prepare` wrote: preparing it again", record),
                         ("has been prepared so already", None)):  # fmt: skip
        if stays:
            (output / "data.json").write_text(json.dumps(stays), "utf-8")
        capsys.readouterr()
        assert prepare.main(arguments) == 0
        assert words in capsys.readouterr().out


def test_a_name_that_is_not_utf_8_is_recorded(raw, tmp_path):
    for suffix in ("src", "tgt"):
        os.link(raw / f"train.{suffix}", os.fsencode(raw) + b"/tr\xe4in." + suffix.encode())
    prefix = os.fsdecode(os.fsencode(raw) + b"/tr\xe4in")
    argv = command(raw, tmp_path / "out", "--subwords=words", "--tokenizer=none")
    assert prepare.main([*argv, f"--train_prefix={prefix}"]) == 0
    inputs = corpus_record.read_record(tmp_path / "out")["inputs"]
    assert "train: tr\udce4in.src" in inputs


def test_a_rule_that_leaves_out_many_pairs_is_pointed_out(raw, tmp_path, capsys):
    """As where one side has no spaces, so that its lines are one word."""
    words = command(raw, tmp_path / "out", "--subwords=words", "--tokenizer=none")
    assert prepare.main([*words, "--max_length=400"]) == 0
    assert "words are counted between spaces" not in capsys.readouterr().out
    text = (raw / "train.src").read_text("utf-8")
    lines = text.splitlines()
    joined = [line.replace(" ", "") for line in lines[20:]]
    (raw / "train.src").write_text("\n".join([*lines[:20], *joined]) + "\n", "utf-8")
    assert prepare.main([*words, "--max_ratio=2"]) == 0
    printed = capsys.readouterr().out
    assert "% of the pairs left out (lengths too different): words are counted between" in printed


def test_what_was_interrupted_is_prepared_again(raw, tmp_path, monkeypatch):
    output = tmp_path / "out"
    arguments = command(raw, output, "--vocab_size=60")
    with monkeypatch.context() as patch:
        patch.setattr(raw_corpus, "train_sentencepiece", _raise)
        assert prepare.main(arguments) == 1
    with pytest.raises(UserError, match="tfmann prepare"):
        corpus_record.load_settings(str(output))
    assert prepare.main(arguments) == 0


def test_a_preparation_that_fails_leaves_the_earlier_one(raw, tmp_path, monkeypatch, capsys):
    output = tmp_path / "out"
    assert prepare.main(command(raw, output, "--vocab_size=60")) == 0
    before = {path.name: path.read_bytes() for path in output.iterdir()}
    with monkeypatch.context() as patch:
        patch.setattr(raw_corpus, "train_sentencepiece", _raise)
        assert prepare.main(command(raw, output, "--vocab_size=70", "--drop_duplicates")) == 1
    assert {path.name: path.read_bytes() for path in output.iterdir()} == before
    assert corpus_record.load_settings(str(output))["src"] == "src"


def _raise(*_):
    raise UserError("the disk is full")


def test_a_full_disk_is_no_fault_of_the_text(raw, tmp_path, monkeypatch, capsys):
    def no_room(path, lines):
        raise UserError(f"cannot write {path}: No space left on device")

    monkeypatch.setattr(raw_corpus, "write_lines", no_room)
    output = tmp_path / "out"
    assert prepare.main(command(raw, output, "--vocab_size=60")) == 1
    assert f"cannot write {output}/train.src: No space" in capsys.readouterr().err


def test_a_folder_of_other_files_is_left_alone(raw, tmp_path, capsys):
    output = tmp_path / "out"
    output.mkdir()
    (output / "train.src").write_text("mine\n")
    assert prepare.main(command(raw, output, "--vocab_size=60")) == 2
    assert "give another --output" in capsys.readouterr().err
    assert (output / "train.src").read_text() == "mine\n" and len(list(output.iterdir())) == 1


@pytest.mark.parametrize(
    "more, message",
    [
        (["--vocab_size=0"], "needs a --vocab_size above 0"),
        (["--max_ratio=0.5"], "expected at least 1"),
        (["--max_length=-1"], "expected at least 0"),
        (["--tokenizer=moses"], "leave out --tokenizer=moses"),
        (["--min_frequency=3"], "--min_frequency=3 has no effect with --subwords=spm"),
        (["--dev_prefix="], "--dev_prefix is empty: give a name, or leave the flag out"),
        (["--train_prefix="], "--train_prefix is empty: expected the PREFIX"),
        (["--train_prefix=nothing"], "no such file: nothing.src (nor nothing.src.gz)"),
        (["--vocab_size=100000"], "SentencePiece cannot train vocab_size=100000"),
        (["--vocab_size=1"], "vocab_size=1: SentencePiece takes from 4 to 1,000,000 pieces"),
        (["--vocab_size=99999999999"], "SentencePiece takes from 4 to 1,000,000 pieces"),
        (["--vocab_size=10"], "Increase vocab_size\n"),
        (["--subwords=bpe", "--vocab_size=20", "--min_frequency=100000"],
         "no token of src is left for the vocabulary: give a smaller --min_frequency"),
        (["--max_length=1"], "the rules leave no pair: 200 too long\n"),
        (["--tgt=src"], "different files"),
        (["--src=docs"], "--src=docs: PREFIX.docs has the numbers of documents"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_one_message(raw, tmp_path, capsys, more, message):
    assert prepare.main(command(raw, tmp_path / "out", *more)) in (1, 2)
    printed = capsys.readouterr().err
    assert message in printed and printed.count("\n") == 1


RECORDED = '{"settings": {}, "inputs": {}, "splits": {}, "recipe": {"source": "a", "target": "b"}'


@pytest.mark.parametrize(
    "content",
    ["{", "[]", "{}", '{"settings": {}}', "[" * 100_000, RECORDED + ', "files": []}',
     RECORDED.replace('"splits": {}', '"splits": []') + "}"],
    ids=range(7),
)  # fmt: skip
def test_a_damaged_record_is_named(tmp_path, content):
    (tmp_path / corpus_record.RECORD).write_text(content)
    with pytest.raises(UserError, match=r"data\.json is damaged: delete it"):
        corpus_record.load_settings(str(tmp_path))


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"dev.src": "x\n" * 11}, "{0}/dev.src has 11, {0}/dev.tgt has 10"),
        ({"dev.src": "", "dev.tgt": "", "dev.docs": ""}, "{0}/dev.src and {0}/dev.tgt are empty"),
        ({"dev.docs": "1\nb\n" + "1\n" * 8}, "{0}/dev.docs, line 2: expected the document's id"),
    ],
)
def test_bad_files_are_named_as_they_were_given(raw, tmp_path, capsys, changes, message):
    output = tmp_path / "out"
    assert prepare.main(command(raw, output, "--vocab_size=60")) == 0
    before = {path.name: path.read_bytes() for path in output.iterdir()}
    for name, text in changes.items():
        (raw / name).write_text(text, "utf-8")
    assert prepare.main(command(raw, output, "--vocab_size=60")) == 1
    assert message.format(raw) in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in output.iterdir()} == before


def test_a_damaged_archive_is_named(raw, tmp_path, capsys):
    packed = gzip.compress((raw / "train.src").read_bytes())
    (raw / "train.src").unlink()
    middle = len(packed) // 2
    for damaged in (packed[:middle], packed[:middle] + bytes(40) + packed[middle + 40 :]):
        (raw / "train.src.gz").write_bytes(damaged)
        assert prepare.main(command(raw, tmp_path / "out", "--vocab_size=60")) == 1
        assert "train.src.gz is not gzip, is damaged or cut off" in capsys.readouterr().err


@pytest.mark.parametrize("tokenizer", ["moses", "none"])
def test_text_that_has_nothing_to_merge_is_named_by_its_files(raw, tmp_path, capsys, tokenizer):
    for side in ("src", "tgt"):
        (raw / f"train.{side}").write_text("a\n" * len((raw / "train.docs").read_text().split()))
    argv = command(raw, tmp_path / "out", "--subwords=bpe", "--vocab_size=9")
    assert prepare.main([*argv, f"--tokenizer={tokenizer}"]) == 1
    files = f"{raw}/train.src, {raw}/train.tgt"
    assert f"tfmann: {files}: no two symbols occur together twice" in capsys.readouterr().err


@pytest.mark.parametrize(
    "language, tokenizer",
    [
        ("zh", "zh"),
        ("zh_CN", "zh"),
        ("ja", "char"),
        ("km", "char"),
        ("yue", "zh"),
        ("de", "13a"),
        ("zho_Hans", "zh"),
        ("jpn_Jpan", "char"),
    ],
)
def test_words_without_spaces_are_split_for_bleu(raw, tmp_path, language, tokenizer):
    for path in raw.glob("*.tgt"):
        path.rename(path.with_suffix(f".{language}"))
    more = ["--subwords=spm", "--vocab_size=60", f"--tgt={language}"]
    assert prepare.main(command(raw, tmp_path / "out", *more)) == 0
    assert run_settings(tmp_path / "out").bleu_tokenize == tokenizer
