"""A side's lines as ids and back, and the vocabularies of a run: built, saved, protected."""

import pytest

from tfmann import config
from tfmann.config import HParams
from tfmann.data import run_vocabularies, text_files
from tfmann.data.subword import WordSegmenter
from tfmann.data.subword_learning import learn_bpe
from tfmann.data.text_encoder import TextEncoder
from tfmann.data.vocab import SPECIALS, Vocabulary
from tfmann.errors import UsageError

SOURCE = ["a b c", "", "c\u2028 x  a ", "b"]
TARGET = ["X", "Y Z", "\t", "Z Z unknown <s> </s> X"]


def test_special_symbols_written_out_in_the_text_are_unknown_words():
    side = TextEncoder(Vocabulary.from_tokens(["a", "b", "c"]), WordSegmenter())
    assert side.encode("a <s> </s> <unk> b") == [3, 0, 0, 0, 4]


def test_decoding_ends_at_the_end_of_the_sentence():
    side = TextEncoder(Vocabulary.from_tokens(["a", "b", "c"]), WordSegmenter())
    assert side.decode([3, 5, 2, 4]) == "a c"
    assert side.decode([2]) == side.decode([]) == ""
    assert side.decode([0, 4]) == "<unk> b"


@pytest.fixture
def settings(tmp_path):
    text_files.write_lines(tmp_path / "t.src", SOURCE)
    text_files.write_lines(tmp_path / "t.tgt", TARGET)
    prefix = str(tmp_path / "t")
    return HParams(src="src", tgt="tgt", train_prefix=prefix)


def settle(settings, out):
    return run_vocabularies.load_or_build(settings, str(out), lambda message: None)


def test_vocabularies_are_built_from_the_training_text(settings, tmp_path):
    languages = settle(settings, tmp_path / "out")
    assert languages.source.vocabulary.tokens == (*SPECIALS, "a", "b", "c", "c\u2028", "x")
    assert languages.target.vocabulary.tokens == (*SPECIALS, "Z", "X", "Y", "unknown")
    assert not (tmp_path / "out").exists()


def test_vocabularies_obey_their_limits(settings, tmp_path):
    capped = settle(settings.replace(vocab_size=5), tmp_path)
    assert capped.source.vocabulary.tokens[3:] == ("a", "b")
    frequent = settle(settings.replace(vocab_min_frequency=2), tmp_path)
    assert frequent.target.vocabulary.tokens[3:] == ("Z", "X")


def test_one_vocabulary_for_both_sides(settings, tmp_path):
    shared = settle(settings.replace(share_vocab=True), tmp_path)
    assert shared.source.vocabulary == shared.target.vocabulary
    assert {"a", "Z"} <= set(shared.source.vocabulary.tokens)
    Vocabulary.from_tokens(["q"]).save(tmp_path / "v.src")
    changed = settings.replace(share_vocab=True, vocab_prefix=str(tmp_path / "v"))
    assert settle(changed, tmp_path).target.vocabulary.tokens == (*SPECIALS, "q")


def test_words_that_one_vocabulary_for_both_sides_lacks_are_counted(settings, tmp_path):
    """`tfmann prepare --subwords=bpe` writes one for each side, and --data gives both."""
    Vocabulary.from_tokens(["a", "b", "c"]).save(tmp_path / "v.src")
    changed = settings.replace(share_vocab=True, vocab_prefix=str(tmp_path / "v"))
    log = []
    run_vocabularies.load_or_build(changed, str(tmp_path), log.append)
    assert log == []
    Vocabulary.from_tokens(["b", "X", "Y"]).save(tmp_path / "v.tgt")
    run_vocabularies.load_or_build(changed, str(tmp_path), log.append)
    (line,) = log
    assert f"words of {tmp_path}/v.src for both sides: 2 of 6 words of {tmp_path}/v.tgt" in line
    log.clear()
    run_vocabularies.load_or_build(changed.replace(vocab_prefix=""), str(tmp_path), log.append)
    assert not any("share_vocab" in line for line in log)


def test_given_vocabularies_are_taken_and_kept(settings, tmp_path):
    for side, word in (("src", "c"), ("tgt", "Y")):
        text_files.write_lines(tmp_path / f"v.{side}", [word, "</s>", "<s>", "<unk>"])
    changed = settings.replace(vocab_prefix=str(tmp_path / "v"))
    languages = settle(changed, tmp_path)
    assert languages.source.encode("a c") == [0, 3]
    run_vocabularies.save(languages, changed, str(tmp_path))
    loaded = run_vocabularies.load(changed, str(tmp_path))
    assert [s.vocabulary for s in loaded] == [s.vocabulary for s in languages]


def test_merge_operations_are_kept_with_the_run(settings, tmp_path):
    learn_bpe([str(tmp_path / "t.src")] * 3, str(tmp_path / "codes"), 1)
    changed = settings.replace(subword_option="bpe", subword_model=str(tmp_path / "codes"))
    languages = settle(changed, tmp_path)
    run_vocabularies.save(languages, changed, str(tmp_path))
    (tmp_path / "codes").unlink()
    loaded = run_vocabularies.load(changed, str(tmp_path))
    for expected, actual in zip(languages, loaded):
        assert expected.vocabulary == actual.vocabulary
        assert expected.segmenter.fingerprint == actual.segmenter.fingerprint
        assert expected.decode(expected.encode("a b c")) in ("a b c", "<unk> <unk> <unk>")


def test_what_is_needed_for_vocabularies(settings, tmp_path):
    with pytest.raises(UsageError, match="neither vocab_prefix nor train_prefix"):
        settle(HParams(src="src", tgt="tgt"), tmp_path)
    with pytest.raises(UsageError, match="tgt is not given"):
        settle(HParams(src="src", train_prefix="x"), tmp_path)


# --- a run that has its vocabulary ------------------------------------------------------------


@pytest.fixture
def trained_run(settings, tmp_path):
    """A function that makes a trained run's folder, as far as its text is concerned."""

    def make(**changes):
        changed = settings.replace(**changes)
        out = tmp_path / "run"
        (out / "best_bleu").mkdir(parents=True)
        run_vocabularies.save(settle(changed, tmp_path / "new"), changed, str(out))
        config.save(changed, out / "hparams.json")
        return changed, out

    return make


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"vocab_size": 5}, r"run holds .*vocabulary.*vocab_size=5 \(saved: 0\).*out_dir"),
        ({"vocab_min_frequency": 2}, r"vocab_min_frequency=2 \(saved: 1\)"),
        ({"vocab_prefix": "{}/v"}, r"vocab_prefix='.*/v' \(saved: None\)"),
        ({"vocab_prefix": "{}/absent"}, r"vocab_prefix='.*/absent' \(saved: None\).*no such file"),
        ({"vocab_size": 5, "vocab_min_frequency": 2}, "vocab_size=5.*vocab_min_frequency=2"),
    ],
)
def test_another_vocabulary_than_the_runs_is_refused(trained_run, tmp_path, changes, words):
    for side in ("src", "tgt"):
        Vocabulary.from_tokens(["q"]).save(tmp_path / f"v.{side}")
    saved, out = trained_run()
    changes = {k: v.format(tmp_path) if isinstance(v, str) else v for k, v in changes.items()}
    with pytest.raises(UsageError, match=words):
        settle(saved.replace(**changes), out)


def test_the_same_vocabulary_from_elsewhere_is_the_runs(trained_run, tmp_path):
    saved, out = trained_run()
    expected = [side.vocabulary for side in settle(saved, out)]
    for side in ("src", "tgt"):
        (tmp_path / f"v.{side}").write_bytes((out / f"vocab.{side}").read_bytes())
    without_effect = [{"vocab_size": 1000}, {"vocab_prefix": str(tmp_path / "v")}]
    for changes in without_effect:
        assert [s.vocabulary for s in settle(saved.replace(**changes), out)] == expected
    (tmp_path / "v.tgt").write_text("<unk>\n<s>\n</s>\nq\n")
    with pytest.raises(UsageError, match="vocab_prefix"):
        settle(saved.replace(vocab_prefix=str(tmp_path / "v")), out)
    for path in ("t.src", "t.tgt"):
        (tmp_path / path).unlink()
    assert [s.vocabulary for s in settle(saved, out)] == expected, "the training text is not needed"


def test_text_of_other_suffixes_is_read_with_the_vocabularies_of_the_run(trained_run):
    """`tfmann evaluate --src=src.tok --tgt=tgt.tok --test_prefix=...`, say."""
    saved, out = trained_run()
    expected = [side.vocabulary for side in run_vocabularies.load(saved, str(out))]
    other = saved.replace(src="src.tok", tgt="tgt.tok")
    assert [side.vocabulary for side in run_vocabularies.load(other, str(out))] == expected


def test_a_run_does_not_continue_with_other_suffixes(trained_run):
    saved, out = trained_run()
    words = r"names its vocabularies by .*: src='a' \(saved: 'src'\)\. Give the files the old"
    with pytest.raises(UsageError, match=words):
        settle(saved.replace(src="a"), out)


def test_other_merge_operations_than_the_runs_are_refused(trained_run, tmp_path):
    for name, merge in (("codes", "c a"), ("copy", "c a"), ("others", "a b")):
        text_files.write_lines(tmp_path / name, ["#version: 0.2", merge])
    saved, out = trained_run(subword_option="bpe", subword_model=str(tmp_path / "codes"))
    copy = saved.replace(subword_model=str(tmp_path / "copy"))
    expected = settle(saved, out).source.segmenter.fingerprint
    assert settle(copy, out).source.segmenter.fingerprint == expected
    for codes in (str(tmp_path / "others"), str(tmp_path / "absent"), None):
        with pytest.raises(UsageError, match=r"subword_model=.* \(saved: '.*/codes'\)"):
            settle(saved.replace(subword_model=codes), out)
    (tmp_path / "codes").unlink()
    assert settle(saved, out).source.segmenter.fingerprint == expected
