"""The rows of a table are comparable: their settings differ in the cell and what is its own."""

import pytest
from helpers.row_settings import (
    DIALOGUES,
    OWN_FIELDS,
    ROOT,
    SENSES,
    TENSE,
    TU,
    differences,
    path_of,
    rows,
    trained_rows,
)  # fmt: skip

from tfmann import config
from tfmann.papers.tables import TABLES
from tfmann.utils import resources

FILES = [ROOT / "hparams" / name for name in resources.settings_names()]
# Settings that come with a cell besides its own fields: its encoder and the end of its source.
WITH_THE_CELL = {"cell", "encoder_type", "bridge", "annotation_merge", "projection_bias"}
LUONG = {"luong", "luong_gain_5"}  # of Multi30k; no system of Meng et al.
# the same system, trained in another way: what differs
NO_SYSTEMS = {
    "rnnsearch_float32": {"precision": "float32"},
    # smoothing spreads probability over every word, but only a sample is scored
    "rnnsearch_sampled": {"num_sampled_softmax": 1000, "label_smoothing": 0.0},
}
# what differs in a Transformer, which is no system of Meng et al.
TRANSFORMERS = dict.fromkeys(
    ("transformer", "kvmematt_transformer"),
    {"num_layers", "embedding_init_weight", "warmup_scheme", "warmup_steps"},
)
SCHEDULE = {"num_train_steps", "decay_steps", "steps_per_external_eval"}
MAY_DIFFER = WITH_THE_CELL.union(*OWN_FIELDS.values())
COMPARED = sorted(set(TABLES) - {"synthetic", TENSE[0], SENSES[0], *TU, *dict(DIALOGUES)})
MENG = {
    "zh-en": "paper", "de-en": "paper", "en-de": "paper", "multi30k": "cpu", "alignment": "paper",
    "synthetic-adequacy": "tiny",
}  # fmt: skip
HANSARDS = ("alignment", "cpu")
# systems that Meng et al. only cite: the cells of their rows
CITED = {"coverage_fertility": "coverage", "coverage_neural": "coverage", "memdec": "memdec",
         "past_future": "past_future"}  # fmt: skip
MINO = ("en-ja", "en-ja-ntcir", "en-ja-aspec")


def has_fewer_updates(name, scale):
    """Whether the rows that start from RNNSearch make fewer updates than it, at this scale."""
    return scale == "cpu" and name in ("multi30k", "alignment", "cache-subtitle")


def has_a_longer_schedule(name, scale, hparams):
    """Whether a row learns more slowly, at this scale: a pure MANN, or NTM-style attention."""
    if name == "synthetic-long":
        return hparams.cell == "ntm_attention"
    return scale == "cpu" and name in ("vi-en", "ro-en") and hparams.encoder_type == "memory"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT / "hparams")))
def test_every_file_is_read_strictly_and_holds_no_key_of_another_cell(path):
    hparams = config.make({}, str(path))
    keys_of_other_cells = set().union(*OWN_FIELDS.values()) - OWN_FIELDS[hparams.cell]
    assert not set(config.read_json(path)) & keys_of_other_cells


@pytest.mark.parametrize("name", COMPARED)
def test_rows_differ_in_the_cell_and_what_is_its_own(name):
    for scale in TABLES[name].scales:
        table, settings = TABLES[name].at(scale), rows(name, scale)
        eos = {row.name for row in table.rows if row.name.endswith("_eos")}
        starts = {row.name: row.start for row in table.rows}
        assert len(settings) == len(trained_rows(name, scale))
        for row, hparams in settings.items():
            first = (
                settings["luong_gain_5"] if name == "multi30k" else next(iter(settings.values()))
            )
            objective = {"eos_attention_weight"} if row in eos else set()
            steps = SCHEDULE if has_fewer_updates(name, scale) and starts[row] else set()
            if name == "multi30k" and row == "luong":
                steps = SCHEDULE
            if has_a_longer_schedule(name, scale, hparams):
                steps = {*SCHEDULE, "decay_scheme"}
            of_system = {*NO_SYSTEMS.get(row, ()), *TRANSFORMERS.get(row, ())}
            assert differences(hparams, first) <= MAY_DIFFER | objective | steps | of_system, row
            assert hparams.eos_attention_weight == (1.0 if row in eos else 0.0), row


@pytest.mark.parametrize("name,scale", [*MENG.items(), HANSARDS])
def test_the_rows_of_meng_start_from_rnnsearch_and_are_what_they_are_called(name, scale):
    settings = rows(name, scale)
    for row in TABLES[name].at(scale).rows:
        if row.name in {*LUONG, *NO_SYSTEMS, *TRANSFORMERS} or row.weights:
            continue
        assert row.start == ("" if row.name == "rnnsearch" else "rnnsearch")
        hparams = settings[row.name]
        system = row.name.replace("_eos", "").replace("_longer", "")
        cell = system.split("_r")[0] if system not in CITED else CITED[system]
        assert hparams.cell == cell
        if hparams.cell == "kvmematt":
            assert hparams.num_rounds == int(system[-1])
        if hparams.cell == "coverage":
            assert hparams.coverage_model == system.split("_")[1]
        if row.start:
            allowed = {"cell", "eos_attention_weight", *OWN_FIELDS[cell]}
            assert differences(hparams, settings["rnnsearch_longer"]) <= allowed
    fewer = SCHEDULE if has_fewer_updates(name, scale) else set()
    changed = differences(settings["rnnsearch_longer"], settings["rnnsearch"])
    assert changed <= fewer and bool(changed) == bool(fewer)


def test_the_paper_scale_of_meng_has_the_paper_s_numbers():
    for name in ("zh-en", "de-en", "en-de"):
        chinese = name == "zh-en"
        for row, hparams in rows(name, "paper").items():
            sizes = (hparams.num_units, hparams.embedding_width)
            assert sizes == (512, 512) and hparams.annotation_merge == "sum"
            assert (hparams.attention_size, hparams.readout_size) == (512, 512), row
            assert (hparams.optimizer, hparams.learning_rate) == ("adadelta", 1.0)
            assert (hparams.adadelta_rho, hparams.adadelta_epsilon) == (0.95, 1e-6)
            assert (hparams.batch_size, hparams.beam_width, hparams.readout_dropout) == (
                80,
                10,
                0.5,
            )
            assert hparams.src_max_len == hparams.tgt_max_len == (80 if chinese else 100)
            assert hparams.max_len_policy == "filter" and hparams.bleu_lowercase == chinese
            assert hparams.vocab_size == (30_000 if chinese else 0)
            assert hparams.share_vocab == (not chinese)
            assert name[:2] == hparams.src and name[3:] == hparams.tgt
    assert TABLES["de-en"].bpe_merges == TABLES["en-de"].bpe_merges == {"paper": 36_000}
    assert TABLES["en-de"].reverse and not TABLES["de-en"].reverse


def test_the_table_of_alignment_error_is_of_the_models_of_table_1():
    table, zh_en = TABLES["alignment"], TABLES["zh-en"]
    assert [row.name for row in table.rows] == [row.name for row in zh_en.rows]
    assert (table.folder, table.prefix) == (zh_en.folder, zh_en.prefix)
    scores = {row.name: (row.paper_test, row.paper_aer) for row in table.rows}
    for name, bleu, aer in (("mematt", 0.71, 1.99), ("kvmematt_r1", 0.90, 2.27),
                            ("kvmematt_r1_eos", 1.28, 3.08), ("kvmematt_r2", 1.78, 4.27),
                            ("kvmematt_r2_eos", 2.54, 4.58)):  # fmt: skip
        gains = [score - baseline for score, baseline in zip(scores[name], scores["rnnsearch"])]
        assert gains == pytest.approx([bleu, -aer])  # the paper's columns of differences
    assert scores["rnnsearch"] == (24.65, 39.97) and scores["rnnsearch_longer"] == (None, None)


def test_the_small_settings_of_meng_differ_from_those_they_are_copies_of_where_they_must():
    tiny = rows("synthetic-adequacy", "tiny")
    assert len(tiny) == 10 + len(CITED) and TABLES["synthetic-adequacy"].seeds == (1, 2, 3)
    for row in ("rnnsearch", "mematt", "kvmematt_r2"):
        file = f"{row.split('_')[0]}.json"
        copied = config.make({}, str(ROOT / "hparams" / "tiny" / file))
        schedule = {"num_train_steps", "steps_per_external_eval", "decay_scheme", "decay_steps"}
        assert differences(tiny[row], copied) == schedule
        assert (tiny[row].num_train_steps, tiny[row].decay_steps) == (2000, 1500)
    multi30k, hansards = rows("multi30k", "cpu"), rows(*HANSARDS)
    assert {"mematt_eos", *tiny} == set(multi30k) - {*LUONG, *NO_SYSTEMS, *TRANSFORMERS}
    assert differences(multi30k["luong"], multi30k["luong_gain_5"]) == {
        "attention_gain_start", "num_train_steps", "decay_steps",
    }  # fmt: skip
    for row, changes in NO_SYSTEMS.items():
        assert multi30k[row] == multi30k["rnnsearch"].replace(**changes)
        assert differences(multi30k[row], multi30k["rnnsearch"]) == set(changes)
    for row, hparams in hansards.items():
        assert differences(hparams, multi30k[row]) - SCHEDULE == {
            "src", "tgt", "src_max_len", "tgt_max_len", "vocab_size", "bleu_lowercase",
        }  # fmt: skip


def test_the_rows_of_mino_are_one_cell_at_the_paper_s_size():
    for name in MINO:
        for row, hparams in rows(name, "paper").items():
            assert (hparams.cell, hparams.key_value_system) == ("key_value", row)
            assert (hparams.num_units, hparams.embedding_width, hparams.decoder_layers) == (
                540,
                540,
                2,
            )
            assert (hparams.encoder_layers, hparams.init_op, hparams.init_weight) == (
                4,
                "normal",
                0.05,
            )
            assert (hparams.optimizer, hparams.learning_rate, hparams.batch_size) == (
                "adam",
                0.001,
                64,
            )
            assert hparams.src_max_len == hparams.tgt_max_len == 40 and hparams.beam_width == 10
            assert hparams.vocab_min_frequency == (1 if name == "en-ja" else 3)
            assert hparams.num_train_steps // hparams.steps_per_external_eval == 20  # epochs


def test_no_file_is_of_no_table():
    of_tables = {path_of(t.at(scale), row, scale) for t in TABLES.values() for scale in t.scales
             for row in t.at(scale).rows}  # fmt: skip
    assert [path for path in FILES if path not in of_tables] == []
