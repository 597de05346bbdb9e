"""What `train.log` says of raw text that a run would split at spaces."""

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


def test_only_the_raw_side_is_named(log_of, tmp_path):
    (advice,) = advice_of(log_of(TOKENS, RAW))
    assert advice.startswith(f"{tmp_path}/train.tgt: words and punctuation")


def test_only_the_raw_corpus_is_named(log_of, tmp_path):
    for suffix in ("src", "tgt"):
        (tmp_path / f"more.{suffix}").write_text("".join(f"{line}\n" for line in RAW))
    prefixes = f"{tmp_path / 'train'},{tmp_path / 'more'}"
    (advice,) = advice_of(log_of(TOKENS, TOKENS, train_prefix=prefixes, train_weights="1,1"))
    assert advice.startswith(f"{tmp_path}/more.src and {tmp_path}/more.tgt: words")


@pytest.mark.parametrize("lines, changes", [(TOKENS, {}), (RAW, {"tokenizer": "moses"})])
def test_text_that_needs_no_advice_gets_none(log_of, lines, changes):
    if changes:
        pytest.importorskip("sacremoses", reason="the extra `moses` is not installed")
    assert not advice_of(log_of(lines, lines, **changes))


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
