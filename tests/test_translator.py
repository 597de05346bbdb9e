"""From lines to lines: order, blanks, batches, limits, attention; and loading a run's folder."""

import functools
import itertools
import math

import numpy as np
import pytest
import small
import tensorflow as tf

import tfmann
from tfmann import hparams as hparams_module
from tfmann.api import Model, links
from tfmann.corpus.subword import WordSegmenter
from tfmann.corpus.text import Languages, Side
from tfmann.corpus.vocab import Vocabulary
from tfmann.decoding import search
from tfmann.decoding.translator import Translator
from tfmann.errors import UsageError, UserError
from tfmann.training import checkpoint

SOURCE_WORDS = [f"a{i}" for i in range(3, small.SOURCE_SIZE)]
TARGET_WORDS = [f"b{i}" for i in range(3, small.TARGET_SIZE)]
LINES = [
    "a3 a9 a14 a5 a20 a7",
    "",
    "a12",
    "a4 a4 a4",
    " \t ",
    "a8 nowhere a19 a3 a11 a16 a21",
    "a12",
    "a17 a6",
    "a22 a13 a10 a15 a18",
]
PAIRS = [
    ("a3 a9 a14", "b5 b6"),
    ("a12", "b5 b6 b18 b4"),
    ("", "b3"),
    ("a7 a8", ""),
    ("a4 a4", "b5 unheard-of"),
    ("a8 nowhere a19 a3 a11", "b11 b3 b9"),
]
BEAM = {"beam_width": 3, "num_translations_per_input": 3}


def languages():
    segmenter = WordSegmenter()
    sides = [Side(Vocabulary.of(words), segmenter) for words in (SOURCE_WORDS, TARGET_WORDS)]
    return Languages(*sides)


@functools.cache
def translator(variant="ntm", **settings):
    """A translator; the same settings give the same one, traced once."""
    sizes = {"init_weight": 1.0, "embedding_init_weight": 3.0, "random_seed": 1}
    model = small.model(variant, **sizes, **settings)
    kernel = model.projection_kernel.numpy()
    kernel[:, 2] *= 3.0  # </s> is likely at some steps and not at others
    model.projection_kernel.assign(kernel)
    return Translator(model, languages(), model.hparams)


@pytest.fixture
def untraced():
    """Compiled functions run as they are written: slower steps, and no tracing."""
    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)


def run(lines, size=32, chunk=0, with_attention=False, **settings):
    one = translator(**{**BEAM, **settings})
    one.hparams = one.hparams.replace(infer_batch_size=size)  # not part of the trace
    return list(one.translate(lines, with_attention, chunk))


def texts(results):
    return [[translation.text for translation in n_best] for n_best in results]


def scores(results):
    return [[translation.score for translation in n_best] for n_best in results]


def test_every_line_gets_its_own_translation_in_its_own_place():
    together = run(LINES)
    assert len(together) == len(LINES)
    for line, n_best in zip(LINES, together):
        ((*alone,),) = run([line])
        assert texts([alone]) == texts([n_best])
        np.testing.assert_allclose(scores([alone]), scores([n_best]), rtol=1e-4, atol=1e-5)
    assert len({n_best[0].text for n_best in together}) >= 5, "all the same shows nothing"
    backward = run(LINES[::-1])
    assert texts(backward) == texts(together)[::-1]


@pytest.mark.parametrize("size", [1, 3, 32])
@pytest.mark.parametrize("chunk", [0, 1, 4])
def test_batches_and_chunks_change_nothing(size, chunk):
    found, wanted = run(LINES, size, chunk), run(LINES)
    assert texts(found) == texts(wanted)
    assert [t.tokens for n in found for t in n] == [t.tokens for n in wanted for t in n]
    np.testing.assert_allclose(scores(found), scores(wanted), rtol=1e-4, atol=1e-5)


def test_blank_lines_stay_blank_and_cost_nothing(monkeypatch):
    def fail(*_):
        raise AssertionError("a blank line was searched")

    one = translator(**BEAM)
    monkeypatch.setattr(one, "_search", fail)
    for n_best in one.translate(["", " ", "\t \t"]):
        assert [(t.text, t.score, t.tokens) for t in n_best] == [("", 0.0, [])] * 3
    assert list(one.translate([])) == []


def test_n_best_are_different_and_stand_from_best_to_worst():
    for line, n_best in zip(LINES, run(LINES)):
        assert len(n_best) == 3
        if line.strip():
            assert len({tuple(t.tokens) for t in n_best}) == 3
            assert n_best[0].score >= n_best[1].score >= n_best[2].score
    first = [n_best[:1] for n_best in run(LINES)]
    only = run(LINES, num_translations_per_input=1)
    assert texts(only) == texts(first)
    np.testing.assert_allclose(scores(only), scores(first), rtol=1e-4, atol=1e-5)


def test_a_chunk_of_one_answers_before_the_next_line_is_read():
    read = []

    def lines():
        for line in LINES[:4]:
            read.append(line)
            yield line

    for answered, n_best in enumerate(translator(**BEAM).translate(lines(), chunk=1), start=1):
        assert len(n_best) == 3
        assert len(read) == answered
    assert len(read) == 4


def test_unknown_words_and_written_specials_are_unknown_words():
    (wanted,) = run(["a3 nowhere a5"])
    assert wanted[0].source_tokens == ["a3", "<unk>", "a5", "</s>"]
    for word in ("</s>", "<s>", "<unk>", "b3"):
        (found,) = run([f"a3 {word} a5"])
        assert found[0].source_tokens == wanted[0].source_tokens
        assert texts([found]) == texts([wanted])
    (found,) = run(["</s>"])
    assert found[0].source_tokens == ["<unk>", "</s>"]
    forced, other = translator(**BEAM).force([("a3", "b3 </s> b4"), ("a3", "b3 what b4")])
    assert forced.tokens == other.tokens == ["b3", "<unk>", "b4", "</s>"]
    assert forced.log_prob == pytest.approx(other.log_prob, rel=1e-5)


def test_tokens_are_the_text_and_its_end():
    for n_best in run(LINES):
        for one in n_best:
            if one.tokens:
                assert one.tokens[-1] == "</s>" and "</s>" not in one.tokens[:-1]
                assert one.text == " ".join(one.tokens[:-1])


def test_longer_sources_are_cut():
    one = translator(**BEAM)
    full = one.hparams
    try:
        one.hparams = full.replace(src_max_len_infer=2)  # not part of the trace
        cut = list(one.translate(["a3 a9 a14 a5", "a3 a9", "a3"]))
    finally:
        one.hparams = full
    wanted = list(one.translate(["a3 a9", "a3 a9", "a3"]))
    assert texts(cut) == texts(wanted)
    assert cut[0][0].source_tokens == ["a3", "a9", "</s>"]
    assert texts(run(["a3 a9 a14 a5"])) != texts(wanted[:1])


@pytest.mark.parametrize("mode", ["beam_search", "greedy", "sample"])
def test_longer_translations_are_ended(untraced, mode):
    count = 1 if mode == "greedy" else 3
    cut = run(LINES, infer_mode=mode, num_translations_per_input=count, tgt_max_len_infer=2)
    lengths = [len(t.tokens) for n_best in cut for t in n_best if t.tokens]
    assert max(lengths) == 2
    assert [len(n_best) for n_best in cut] == [count] * len(LINES)
    longer = run(LINES, infer_mode=mode, num_translations_per_input=count)
    assert max(len(t.tokens) for n_best in longer for t in n_best) > 2


def test_samples_differ_and_come_again(untraced):
    hot = {"infer_mode": "sample", "sampling_temperature": 5.0}
    first, again = run(LINES[:1], **hot), run(LINES[:1], **hot)
    assert texts(first) == texts(again)
    assert len(set(texts(first)[0])) > 1
    one = translator(**BEAM, **hot)
    full = one.hparams
    try:
        one.hparams = full.replace(random_seed=6)
        assert texts(one.translate(LINES[:1])) != texts(first)
    finally:
        one.hparams = full
    cold = run(LINES, infer_mode="sample", sampling_temperature=1e-4)
    greedy = run(LINES, infer_mode="greedy", num_translations_per_input=1)
    assert texts(cold) == [n_best * 3 for n_best in texts(greedy)]


def test_attention_has_a_row_a_word_and_a_column_a_source_token():
    results = run(LINES, with_attention=True)
    assert texts(results) == texts(run(LINES))
    for line, one in ((line, one) for line, n_best in zip(LINES, results) for one in n_best):
        if not line.strip():
            assert one.attention is None
            continue
        assert one.attention.shape == (len(one.tokens), len(line.split()) + 1)
        np.testing.assert_allclose(one.attention.sum(axis=1), 1.0, atol=1e-5)
    model = Model(translator(**BEAM), "nowhere")
    for n_best in results:
        for one in n_best:
            if one.tokens and not {"<unk>", "<s>"} & set(one.tokens):
                pair = (" ".join(one.source_tokens[:-1]), one.text)
                forced = model.trace(pair)["alignments"]
                np.testing.assert_allclose(one.attention, forced, atol=1e-4)
                return
    raise AssertionError("no translation can be given back")


def test_forced_score_is_the_score_of_the_search():
    results = run(LINES)
    pairs, wanted = [], []
    for line, n_best in zip(LINES, results):
        for one in n_best:
            if line.strip() and not {"<unk>", "<s>"} & set(one.tokens):
                pairs.append((line, one.text))
                wanted.append(one.score)
    assert len(pairs) >= 5
    found = Model(translator(**BEAM), "nowhere").score(pairs)
    np.testing.assert_allclose([f.log_prob for f in found], wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("size", [1, 2, 32])
def test_forced_log_probability_is_the_sum_of_its_words(size):
    one = translator(**BEAM)
    one.hparams = one.hparams.replace(infer_batch_size=size)
    forced = one.force(PAIRS)
    for (source, target), result in zip(PAIRS, forced):
        assert len(result.tokens) == len(target.split()) + 1 == len(result.word_log_probs)
        assert len(result.source_tokens) == len(source.split()) + 1
        assert result.log_prob == pytest.approx(result.word_log_probs.sum(), rel=1e-5)
        assert np.all(result.word_log_probs < 0)
        (alone,) = one.force([(source, target)])
        np.testing.assert_allclose(result.word_log_probs, alone.word_log_probs, rtol=1e-4)
    assert one.force([]) == []


def test_probabilities_of_all_one_word_translations_and_the_rest_sum_to_one():
    one = translator(**BEAM)
    pairs = [("a3 a9", word) for word in TARGET_WORDS]
    first = [f.word_log_probs[0] for f in one.force(pairs)]
    (empty,) = one.force([("a3 a9", "")])
    known = sum(map(math.exp, first)) + math.exp(empty.log_prob)
    (unknown,) = one.force([("a3 a9", "<unk>")])
    assert known + math.exp(unknown.word_log_probs[0]) <= 1.0 + 1e-5  # <s> has the rest


@pytest.mark.parametrize("variant", list(small.VARIANTS))
def test_trace_shows_distributions_for_every_step(untraced, variant):
    model = Model(translator(variant), "nowhere")
    h = model.hparams
    for source, target in (PAIRS[0], PAIRS[2], PAIRS[5]):
        seen = model.trace((source, target))
        source_tokens, tokens = model.tokens((source, target))
        steps, width = len(tokens), len(source_tokens)
        assert tokens[-1] == source_tokens[-1] == "</s>"
        assert seen["alignments"].shape == (steps, width)
        distributions = ["alignments"]
        if h.cell == "ntm_attention":
            heads, taps = h.num_attention_heads, 2 * h.shift_range + 1
            for name in ("read_weights", "content_weights"):
                assert seen[name].shape == (steps, heads, width)
            assert seen["shift_kernel"].shape == (steps, heads, taps)
            assert seen["interpolation_gate"].shape == (steps, heads, 1)
            assert np.all((seen["interpolation_gate"] > 0) & (seen["interpolation_gate"] < 1))
            assert seen["sharpening"].shape == (steps, heads, 1)
            assert np.all(seen["sharpening"] > 1)
            distributions += ["read_weights", "content_weights", "shift_kernel"]
        for name in distributions:
            assert np.all(seen[name] >= 0)
            np.testing.assert_allclose(seen[name].sum(axis=-1), 1.0, atol=1e-5)


def test_what_a_cell_shows_does_not_depend_on_the_pairs_beside_it(untraced):
    one = translator()
    pairs = [("a3", "b3 b4"), ("a5 a6", "b3 b4"), ("a5 a6 a7 a8", "b7")]  # 3 taps, 3 positions
    for pair, result in zip(pairs, one.force(pairs, search.EVERYTHING)):
        (alone,) = one.force([pair], search.EVERYTHING)
        assert set(result.diagnostics) == set(alone.diagnostics)
        for name, value in alone.diagnostics.items():
            np.testing.assert_allclose(result.diagnostics[name], value, atol=1e-5, err_msg=name)
    with pytest.raises(UserError, match="alignments"):
        one.force(pairs, ("no_such_thing",))


def test_links_leave_out_the_end_on_both_sides():
    attention = np.array([[0.1, 0.7, 0.2], [0.3, 0.1, 0.6], [0.9, 0.1, 0.0]])
    assert links(attention, ["x", "y", "</s>"], ["p", "q", "</s>"]) == [(1, 0), (0, 1)]
    assert links(attention, ["x", "y", "z"], ["p", "q", "</s>"]) == [(1, 0), (2, 1)]
    assert links(attention, ["x", "y", "z"], ["p", "q", "r"]) == [(1, 0), (2, 1), (0, 2)]
    assert links(attention[:, :1], ["</s>"], ["p", "q", "</s>"]) == []
    assert links(attention[:1], ["x", "y", "</s>"], ["</s>"]) == []


def test_align_links_every_target_word_once(untraced):
    model = Model(translator(**BEAM), "nowhere")
    for (source, target), found in zip(PAIRS, model.align(PAIRS)):
        words = target.split() if source else []
        assert [j for _, j in found] == list(range(len(words)))
        assert all(0 <= i < len(source.split()) for i, _ in found)
        attention = model.trace((source, target))["alignments"]
        for i, j in found:
            assert attention[j, i] == attention[j, :-1].max()


# Loading


def random_weights(variables, seed):
    stream = np.random.default_rng(seed)
    named = checkpoint.by_name(variables)
    return {name: stream.normal(0, 0.7, v.shape).astype(np.float32) for name, v in named.items()}


@pytest.fixture
def folder(tmp_path, untraced):
    """A run's folder with a best checkpoint, and the translator whose weights it holds."""
    model = small.model("luong", src="aa", tgt="bb", beam_width=2, random_seed=9)
    arrays = random_weights(model.trainable_variables, 1)
    checkpoint.assign(model.trainable_variables, arrays, "memory")
    root = tmp_path / "run"
    root.mkdir()
    hparams_module.save(model.hparams, root / "hparams.json")
    sides = languages()
    sides.source.vocabulary.save(root / "vocab.aa")
    sides.target.vocabulary.save(root / "vocab.bb")
    checkpoint.write(str(root / "best_bleu"), arrays, None, {"step": 7})
    return root, Translator(model, sides, model.hparams)


def test_loaded_model_translates_as_the_one_that_was_saved(folder):
    root, saved = folder
    loaded = tfmann.load(str(root))
    assert loaded.checkpoint == str(root / "best_bleu")
    found, wanted = list(loaded.translate(LINES)), list(saved.translate(LINES))
    assert texts(found) == texts(wanted) and scores(found) == scores(wanted)
    assert len(set(itertools.chain(*texts(found)))) > 3
    assert [f.log_prob for f in loaded.score(PAIRS)] == [f.log_prob for f in saved.force(PAIRS)]


def test_settings_of_the_search_may_change_and_no_others(folder):
    root, _ = folder
    loaded = tfmann.load(str(root), beam_width=3, num_translations_per_input=3)
    assert [len(n_best) for n_best in loaded.translate(LINES[:2])] == [3, 3]
    with pytest.raises(UsageError, match="num_units=16"):
        tfmann.load(str(root), num_units=16)
    with pytest.raises(UsageError, match="beam_width"):
        tfmann.load(str(root), beam_widht=3)
    with pytest.raises(UsageError, match="beam_width"):
        tfmann.load(str(root), beam_width=0)


def test_checkpoint_of_another_model_is_refused(folder):
    root, saved = folder
    hparams_module.save(saved.hparams.replace(num_units=16), root / "hparams.json")
    with pytest.raises(UserError, match="another model's.* there and .* here"):
        tfmann.load(str(root))
    hparams_module.save(saved.hparams, root / "hparams.json")
    Vocabulary.of(TARGET_WORDS[1:]).save(root / "vocab.bb")
    with pytest.raises(UserError, match="another model's"):
        tfmann.load(str(root))


@pytest.mark.parametrize("damage", ["cut", "flipped", "no weights", "no state", "gone"])
def test_unreadable_best_falls_back_to_the_latest_checkpoint(folder, damage):
    root, saved = folder
    variables = saved.model.trainable_variables
    for step in (3, 5):
        arrays = random_weights(variables, step)
        checkpoint.write(str(root / f"checkpoints/step-{step:08d}"), arrays, None, {"step": step})
    weights = root / "best_bleu/weights.npz"
    content = weights.read_bytes()
    if damage == "cut":
        weights.write_bytes(content[:-10])
    elif damage == "flipped":
        middle = len(content) // 2
        weights.write_bytes(content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])
    elif damage == "no weights":
        weights.unlink()
    else:
        (root / "best_bleu/state.json").unlink()
        if damage == "gone":
            weights.unlink()
            weights.parent.rmdir()
    said = []
    loaded = tfmann.load(str(root), log=said.append)
    latest = str(root / "checkpoints/step-00000005")
    assert loaded.checkpoint == latest
    assert said[-1] == f"weights of {latest}"
    assert any("falling back to" in line for line in said) == (damage != "gone")
    checkpoint.assign(variables, random_weights(variables, 5), "memory")
    assert texts(loaded.translate(LINES)) == texts(saved.translate(LINES))
    if damage != "gone":
        with pytest.raises(UserError, match="best_bleu"):
            tfmann.load(str(root), ckpt=str(root / "best_bleu"))


def test_a_given_checkpoint_is_the_one_that_is_used(folder):
    root, saved = folder
    arrays = random_weights(saved.model.trainable_variables, 3)
    given = str(root / "checkpoints/step-00000003")
    checkpoint.write(given, arrays, None, {"step": 3})
    loaded = tfmann.load(str(root), ckpt=given)
    assert loaded.checkpoint == given
    assert [f.log_prob for f in loaded.score(PAIRS)] != [f.log_prob for f in saved.force(PAIRS)]


def test_folder_without_a_model_is_named(folder):
    root, _ = folder
    with pytest.raises(UserError, match="no-such-run holds no trained model"):
        tfmann.load(str(root / "no-such-run"))
    (root / "best_bleu/state.json").unlink()
    with pytest.raises(UserError, match="holds no checkpoint yet"):
        tfmann.load(str(root))
    (root / "vocab.bb").unlink()
    with pytest.raises(UserError, match="vocab.bb"):
        tfmann.load(str(root))
