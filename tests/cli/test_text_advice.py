"""What `train.log` says of raw text that a run would split at spaces."""

import unicodedata

import pytest
from helpers import tiny_runs

from tfmann import nmt
from tfmann.cli import train
from tfmann.errors import UserError

RAW = ["Der Hund sieht die Katze.", "Wer ist da?", "Sie sagte: »Geh!«", "Ja, ja, ja."] * 4
TOKENS = ["der hund sieht die katze .", "wer ist da ?", "sie sagte : geh !", "ja , ja , ja ."] * 4


@pytest.fixture
def log_of(tmp_path, monkeypatch):
    """Begins a run on these lines, ends it before anything is compiled, and returns its log."""

    def stop(*_):
        raise UserError("this is enough")

    monkeypatch.setattr(train, "TrainStep", stop)

    def begin(source, target, **changes):
        for split in ("train", "dev", "test"):
            for suffix, lines in (("src", source), ("tgt", target)):
                (tmp_path / f"{split}.{suffix}").write_text("".join(f"{line}\n" for line in lines))
        out = tmp_path / "out"
        assert nmt.main(tiny_runs.flags(tmp_path, out, num_train_steps=1, **changes)) == 1
        log = (out / "train.log").read_text()
        assert "unknown: " in log
        return log

    return begin


def advice_of(log):
    return [line for line in log.splitlines() if "tfmann prepare" in line]


def test_raw_text_that_is_split_at_spaces_gets_advice(log_of, tmp_path):
    (advice,) = advice_of(log_of(RAW, RAW))
    assert advice.startswith(
        f"{tmp_path}/train.src and {tmp_path}/train.tgt: words and punctuation"
    )
    assert "--tokenizer=moses" in advice


OTHER_RAW = {
    "a quote": 'He said "yes".', "Hindi": "मैं हिन्दी में लिखता हूँ।",
    "Arabic": "هل تحب الكتب؟", "Chinese with spaces": "我 喜欢 书。",
}  # fmt: skip


@pytest.mark.parametrize("line", OTHER_RAW.values(), ids=OTHER_RAW)
def test_raw_text_of_other_languages_and_marks_is_recognised(log_of, tmp_path, line):
    (advice,) = advice_of(log_of([line] * 16, TOKENS))
    assert advice.startswith(f"{tmp_path}/train.src: words and punctuation are not separated")


def test_text_without_spaces_is_named(log_of, tmp_path):
    (advice,) = advice_of(log_of(["我喜欢这本书吗"] * 16, TOKENS))
    assert advice.startswith(f"{tmp_path}/train.src: most lines are one token.")


VIETNAMESE = "tôi không biết tiếng việt ."


@pytest.mark.parametrize("tokenizer", ["", "moses"])
def test_accents_that_are_characters_of_their_own_are_named(log_of, tmp_path, tokenizer):
    decomposed = unicodedata.normalize("NFD", VIETNAMESE)
    log = log_of([decomposed, "a b ."] * 8, TOKENS, tokenizer=tokenizer)
    (line,) = [line for line in log.splitlines() if "separate characters" in line]
    assert line.startswith(f"{tmp_path}/train.src: letters and their accents")


def test_letters_that_have_no_composed_form_are_not(log_of):
    assert "separate characters" not in log_of([VIETNAMESE, "क़लम ."] * 8, TOKENS)


@pytest.mark.parametrize(
    ("changes", "effect"),
    [({}, "BLEU counts subwords as words"), ({"subword_option": "bpe"}, "it is segmented again")],
)
def test_text_that_is_segmented_into_subwords_already_is_named(log_of, tmp_path, changes, effect):
    if changes:
        (tmp_path / "codes").write_text("#version: 0.2\nd e\n")
        changes = {**changes, "subword_model": tmp_path / "codes"}
    lines = ["der hu@@ nd sieht", "die kat@@ ze ."] * 8
    (line,) = [line for line in log_of(lines, TOKENS, **changes).splitlines() if "marks of" in line]
    assert line.startswith(f"{tmp_path}/train.src: the text has the marks of subwords")
    assert effect in line


def test_a_dev_set_of_mostly_unknown_tokens_is_pointed_out(log_of, tmp_path):
    (tmp_path / "other.src").write_text("völlig andere wörter\n" * 4)
    (tmp_path / "other.tgt").write_text("der hund\n" * 4)
    log = log_of(TOKENS, TOKENS, dev_prefix=tmp_path / "other")
    (line,) = [line for line in log.splitlines() if "100.00%" in line]
    assert "tokens in other.src (is it segmented like the training text?), 0.00% of" in line
    assert log.count("is it segmented") == 1


def test_only_the_raw_side_is_named(log_of, tmp_path):
    (advice,) = advice_of(log_of(TOKENS, RAW))
    assert advice.startswith(f"{tmp_path}/train.tgt: words and punctuation")


def test_only_the_raw_corpus_is_named(log_of, tmp_path):
    for suffix in ("src", "tgt"):
        (tmp_path / f"more.{suffix}").write_text("".join(f"{line}\n" for line in RAW))
    prefixes = f"{tmp_path / 'train'},{tmp_path / 'more'}"
    (advice,) = advice_of(log_of(TOKENS, TOKENS, train_prefix=prefixes, train_weights="1,1"))
    assert advice.startswith(f"{tmp_path}/more.src and {tmp_path}/more.tgt: words")


@pytest.mark.parametrize(
    "lines, changes",
    [(TOKENS, {}), (["Haus", "Hund"] * 8, {}), (RAW, {"tokenizer": "moses"})],
)
def test_text_that_needs_no_advice_gets_none(log_of, lines, changes):
    if changes:
        pytest.importorskip("sacremoses", reason="the extra `moses` is not installed")
    log = log_of(lines, lines, **changes)
    assert not advice_of(log) and "the marks of" not in log and "is it segmented" not in log


def test_a_run_says_that_dev_and_test_are_training_text(log_of, tmp_path):
    log = log_of(TOKENS, TOKENS)
    lines = [line for line in log.splitlines() if "are in the training text too" in line]
    assert [line.split(" and ")[0] for line in lines] == [
        str(tmp_path / "dev.src"),
        str(tmp_path / "test.src"),
    ]


def test_a_run_on_other_pairs_says_nothing_of_the_kind(log_of, tmp_path):
    for suffix in ("src", "tgt"):
        lines = "".join(f"{line} again\n" for line in TOKENS)
        (tmp_path / f"new.{suffix}").write_text(lines)
    new = str(tmp_path / "new")
    log = log_of(TOKENS, TOKENS, dev_prefix=new, test_prefix=new)
    assert "in the training text" not in log
