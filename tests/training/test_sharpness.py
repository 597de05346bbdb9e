"""Sharpness of addresses: against the oracle, alive and collapsed, in logs and results."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf
from helpers import small_models, tiny_runs
from oracles import sharpness as oracle

from tfmann import config, nmt
from tfmann.training import sharpness
from tfmann.training.objective import sum_loss
from tfmann.training.perplexity import Perplexity

LENGTHS = [(5, 4), (1, 6), (3, 1), (0, 2), (7, 5)]
SMALL_MEMORY = {"num_memory_locations": 6, "memory_unit_size": 5}
MEMORIES = {
    "ntm": {"cell": "ntm", "encoder_type": "memory", **SMALL_MEMORY, "read_heads": 2},
    "dnc": {"cell": "dnc", "encoder_type": "memory", **SMALL_MEMORY},
    "mad-ntm": {"cell": "mad", **SMALL_MEMORY},
    "mad-dnc": {"cell": "mad", "external_addressing": "dnc", **SMALL_MEMORY, "read_heads": 2},
}
WITH_ATTENTION = ["luong", "ntm-heads", "rnnsearch", "mematt", "kvmematt-3", "key-value"]


def pairs(lengths, append_source_eos=True):
    return small_models.batch(lengths, append_source_eos=append_source_eos)


def measures_of_oracle(model, batch):
    """Every head by the oracle, from the weights that the model shows."""
    tensors = tuple(tf.constant(part) for part in batch[:5])
    loss = sum_loss(model, tensors, None, tf.float32, with_addresses=True)
    of_target, of_source = [{k: v.numpy() for k, v in part.items()} for part in loss.addresses]
    measures = {}
    for name, weights in of_target.items():
        attends = name == "alignments"
        if attends:
            weights = weights[:, :, None]
        for head in range(weights.shape[2]):
            rows = []
            for row, length in enumerate(batch.target_length):
                steps = list(weights[:length, row, head])
                if name in of_source:
                    steps = list(of_source[name][: batch.source_length[row], row, head]) + steps
                rows.append(steps)
            has_memory = name != "alignments" and weights.shape[3] == 6
            locations = [6] * len(rows) if has_memory else list(batch.source_length)
            last = batch.source_length - 1 if attends else None
            head_name = "attention" if attends else f"{name.split('_')[0]}_head_{head}"
            measures[head_name] = oracle.head_measures(rows, locations, last)
    return measures


def assert_close(actual, expected):
    assert actual.keys() == expected.keys()
    for head, measures in expected.items():
        assert actual[head].keys() == measures.keys(), head
        for name, value in measures.items():
            title = f"{head} {name}"
            np.testing.assert_allclose(actual[head][name], value, atol=2e-5, err_msg=title)


@pytest.mark.quick("luong", "kvmematt-3")
@pytest.mark.parametrize("variant", WITH_ATTENTION)
def test_of_an_attention_as_by_the_oracle(variant):
    model = small_models.model(variant)
    batch = pairs(LENGTHS)
    _, measured = Perplexity(model).measure([batch])
    assert_close(measured, measures_of_oracle(model, batch))
    assert 0.05 < measured["attention"]["entropy"] < 0.999


@pytest.mark.quick("ntm", "mad-dnc")
@pytest.mark.parametrize("variant", MEMORIES)
def test_of_a_memory_as_by_the_oracle(variant):
    model = small_models.model("luong", **MEMORIES[variant])
    batch = pairs(LENGTHS)
    _, measured = Perplexity(model).measure([batch])
    assert_close(measured, measures_of_oracle(model, batch))
    heads = {head for head in measured if head != "attention"}
    reads = MEMORIES[variant].get("read_heads", 1)
    assert heads == {"write_head_0", *(f"read_head_{head}" for head in range(reads))}


def test_batches_add_up_to_the_mean_over_their_steps():
    model = small_models.model("luong")
    perplexity = Perplexity(model)
    _, together = perplexity.measure([pairs(LENGTHS)])
    parts = [small_models.batch(LENGTHS)]
    rows = [[part[row : row + 1] for part in parts[0][:5]] for row in range(len(LENGTHS))]
    fields = parts[0]._replace
    singles = [
        fields(source=r[0], source_length=r[1], target_in=r[2], target_out=r[3], target_length=r[4])
        for r in rows
    ]
    _, apart = perplexity.measure(singles)
    assert_close(apart, together)


def test_without_an_end_of_source_its_weight_is_not_reported():
    perplexity = Perplexity(small_models.model("luong", append_source_eos=False))
    _, measured = perplexity.measure([pairs([(5, 4), (3, 2)], append_source_eos=False)])
    assert "end_weight" not in measured["attention"]
    assert "</s>" not in "".join(sharpness.lines(measured))


def measure(weights, source_length, target_length):
    weights = tf.constant(weights, tf.float32)
    sums = sharpness.measure(
        {"alignments": weights}, {}, tf.constant(source_length), tf.constant(target_length)
    )
    return sharpness.means({k: v.numpy() for k, v in sums.items()}, True)["attention"]


def test_measures_of_a_uniform_and_of_a_sharp_address():
    uniform = np.full((3, 1, 4), 0.25)
    uniform_measures = measure(uniform, [4], [3])
    assert uniform_measures == pytest.approx(
        {"entropy": 1.0, "greatest_weight": 0.25, "distinct_positions": 1 / 3, "end_weight": 0.25}
    )
    one_hot_rows = np.eye(4)[[0, 3, 1]][:, None]
    assert measure(one_hot_rows, [4], [3]) == pytest.approx(
        {"entropy": 0.0, "greatest_weight": 1.0, "distinct_positions": 1.0, "end_weight": 0.5}
    )


@pytest.mark.parametrize(
    ("greatest", "distinct", "answer"), [(1.0, 0.2, True), (1.0, 0.9, False), (0.5, 0.2, False)]
)
def test_collapsed_is_one_answer_for_many_questions(greatest, distinct, answer):
    measures = {"entropy": 0.0, "greatest_weight": greatest, "distinct_positions": distinct}
    assert sharpness.collapsed({"attention": measures}) is answer
    assert not sharpness.collapsed({"read_head_0": measures})
    assert not sharpness.collapsed({})


@pytest.mark.parametrize(
    ("variant", "changes", "advice"),
    [
        ("luong", {}, "attention_score=cosine"),
        ("ntm", {}, "attention_score=cosine"),
        ("ntm-cosine", {}, "sharpening_start=-3"),
        ("ntm-cosine", {"head_scale": 0.1}, "a lower learning_rate"),
        ("luong-cosine", {}, "a lower learning_rate"),
        ("rnnsearch", {}, "a lower learning_rate"),
    ],
)
def test_the_advice_is_that_of_the_cell(variant, changes, advice):
    assert advice in sharpness.remedy(small_models.model(variant, **changes).cell)


def test_the_advice_for_a_cell_of_ones_own_names_no_setting_that_it_lacks(monkeypatch):
    spec = config.CellSpec("mine", "MyCell", config.RNNSearchOptions)
    monkeypatch.setitem(config.cells.CELLS, "mine", spec)
    score = SimpleNamespace(kind="dot")
    mine = SimpleNamespace(
        attention=SimpleNamespace(score=score), hparams=SimpleNamespace(cell="mine")
    )
    advice = sharpness.remedy(mine)
    assert "attention_score" not in advice and "in the cell's code" in advice
    mine.hparams.cell = "luong"
    assert "attention_score=cosine" in sharpness.remedy(mine)


SHRUNK = {
    "src": "src", "tgt": "tgt", "batch_size": 32, "vocab_min_frequency": 1, "num_train_steps": 60,
    "steps_per_external_eval": 20, "infer_mode": "greedy", "tgt_max_len_infer": 12,
    "num_attention_images": 0, "precision": "float32",
}  # fmt: skip
WARNING = "the attention has collapsed: its dot products saturate the softmax; attention_score"


def trained(folder, hparams_path, **changes):
    """Entropies of the attention at the evaluations of a shipped configuration, and the log."""
    data, out = tiny_runs.corpus(folder / "data", 2000, dev=24), folder / "out"
    settings = tiny_runs.path_flags(data, out, hparams_path=f"hparams/cpu/{hparams_path}.json")
    assert nmt.main([*settings, *(f"--{k}={v}" for k, v in {**SHRUNK, **changes}.items())]) == 0
    history = json.loads((out / "results.json").read_text())["history"]
    assert [entry["step"] for entry in history] == [20, 40, 60]
    entropies = [entry["addresses"]["attention"]["entropy"] for entry in history]
    return entropies, (out / "train.log").read_text()


@pytest.mark.quick("multi30k/de_en_luong")
@pytest.mark.parametrize(
    "hparams_path",
    [
        "multi30k/de_en_luong",
        pytest.param("collier2019/vi_en_mad_1", marks=pytest.mark.slow),
        pytest.param("collier2019/vi_en_ntm_attention", marks=pytest.mark.slow),
        "mino2017/iwslt07_key_value",
    ],
)
def test_the_attention_of_a_shipped_configuration_is_alive(tmp_path, hparams_path):
    """Its text and its vocabulary are small; all widths and rates are the shipped ones."""
    entropies, log = trained(tmp_path, hparams_path)
    assert min(entropies) > 0.3
    assert WARNING not in log


@pytest.mark.thorough
def test_an_unscaled_dot_collapses_and_the_log_says_so_once(tmp_path):
    plain = {"attention_score": "dot", "label_smoothing": 0.0}
    entropies, log = trained(tmp_path, "multi30k/de_en_luong_gain_5", **plain)
    assert max(entropies) < 0.3
    assert log.count(WARNING) == 1
    assert log.count("  attention: entropy 0.") == 3
