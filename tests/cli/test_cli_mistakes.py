"""Mistakes that lose a file or an afternoon: what is overwritten, moved, changed, misnamed."""

import json
import os
import re
import shutil

import pytest
import tensorflow as tf
from helpers import tiny_runs
from helpers.command_line import ROOT, command, fails, run_in_a_process, tree

from tfmann import config, nmt
from tfmann.cli import inspection, main, serve, translate
from tfmann.config.other_names import OTHER_SETTINGS
from tfmann.data import text_files
from tfmann.errors import UserError
from tfmann.training import checkpoint, trainer
from tfmann.utils import run_folder


@pytest.mark.parametrize(
    "flags, words",
    [
        ({"inference_output_file": "in"}, "--inference_output_file and --inference_input_file are"),
        ({"inference_output_file": "./in"}, "inference_input_file are the same file: ./in would"),
        ({"inference_output_file": "soft"}, "soft would be lost"),
        ({"inference_output_file": "hard"}, "hard would be lost"),
        ({"alignment_file": "in"}, "--alignment_file and --inference_input_file"),
        (
            {"inference_ref_file": "other", "inference_output_file": "other"},
            "--inference_output_file and --inference_ref_file",
        ),
        (
            {"mode": "align", "inference_ref_file": "other", "gold_file": "gold",
             "inference_output_file": "gold"},
            "--inference_output_file and --gold_file",
        ),
    ],
)  # fmt: skip
def test_what_is_read_is_not_overwritten(
    model, source, tmp_path, capsys, monkeypatch, flags, words
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "soft").symlink_to(source)
    os.link(source, tmp_path / "hard")
    for name in ("other", "gold"):
        (tmp_path / name).write_text("x\n")
    before = tree(tmp_path)
    fails(command(model, **{"inference_input_file": "in", **flags}), capsys, 2, words)
    assert tree(tmp_path) == before


def test_evaluate_does_not_overwrite_what_it_scores_against(model, tmp_path, capsys):
    for name in ("dev.src", "dev.tgt"):
        (tmp_path / name).write_text("der hund\n")
    argv = ["evaluate", f"--out_dir={model}", "--src=src", "--tgt=tgt",
            f"--dev_prefix={tmp_path / 'dev'}"]  # fmt: skip
    for name in ("dev.src", "dev.tgt"):
        output = f"--inference_output_file={tmp_path / name}"
        fails([*argv, output], capsys, 2, f"and the dev set .*{name} are the same", main.main)
    assert (tmp_path / "dev.tgt").read_text() == "der hund\n"


def test_translate_does_not_overwrite_its_input(model, source, capsys):
    before = source.read_bytes()
    argv = ["translate", f"--model={model}", f"--input={source}", f"--output={source}"]
    fails(argv, capsys, 2, "are the same file", main.main)
    assert source.read_bytes() == before


@pytest.mark.parametrize("name", ["hparams.json", "vocab.tgt", "best_bleu/state.json"])
def test_translate_does_not_overwrite_its_model(model, source, capsys, name):
    before = tree(model)
    argv = ["translate", f"--model={model}", f"--input={source}", f"--output={model / name}"]
    fails(argv, capsys, 2, f"--output and the model's {name} are the same file", main.main)
    assert tree(model) == before


@pytest.mark.parametrize("flag", ["translate --ensemble", "inspect --attention_of"])
def test_another_model_that_is_read_is_not_overwritten(model, source, tmp_path, capsys, flag):
    other = tmp_path / "other"
    shutil.copytree(model, other)
    before = tree(other)
    name, flag = flag.split()
    argv = [name, f"--model={model}", f"--input={source}", f"{flag}={other}"]
    words = "--output and the model's vocab.tgt are the same file"
    fails([*argv, f"--output={other / 'vocab.tgt'}"], capsys, 2, words, main.main)
    assert tree(other) == before


@pytest.mark.parametrize("learned, flag", [("lexicon", "lexicon_file"), ("shortlist", "shortlist")])
def test_what_is_learned_does_not_overwrite_its_model(model, source, capsys, learned, flag):
    before = tree(model)
    for side in ("src", "tgt"):
        shutil.copy(source, f"{source}.{side}")
    argv = [learned, f"--out_dir={model}", "--src=src", "--tgt=tgt", f"--train_prefix={source}",
            f"--{flag}={model / 'vocab.src'}"]  # fmt: skip
    fails(argv, capsys, 2, f"--{flag} and the model's vocab.src are the same file", main.main)
    assert tree(model) == before


@pytest.mark.thorough
def test_a_device_may_be_both(model):
    argv = command(model, inference_input_file="/dev/null", inference_output_file="/dev/null")
    assert run_in_a_process(argv).returncode == 0


def test_the_lexicon_does_not_overwrite_its_text(tmp_path, capsys):
    for name in ("train.src", "train.tgt"):
        (tmp_path / name).write_text("a b\n")
    before = tree(tmp_path)
    argv = command(
        tmp_path / "out", mode="lexicon", src="src", tgt="tgt",
        train_prefix=tmp_path / "train", lexicon_file=tmp_path / "train.tgt",
    )  # fmt: skip
    fails(argv, capsys, 2, r"--lexicon_file and the text .*train\.tgt are the same file")
    assert tree(tmp_path) == before


# --- checkpoints ------------------------------------------------------------------------------


def test_a_run_means_its_best_weights(untraced, model, tmp_path, source, capsys):
    assert run_folder.weights_folder(str(model)) == str(model / "best_bleu")
    assert run_folder.weights_folder(str(model / "best_bleu")) == str(model / "best_bleu")
    assert checkpoint.existing_folder(str(model), print) == str(model / "best_bleu")
    argv = command(model, inference_input_file=source, ckpt=model, infer_mode="greedy")
    assert nmt.main(argv) == 0
    assert f"weights of {model / 'best_bleu'}\n" in capsys.readouterr().err
    empty = tmp_path / "run"
    empty.mkdir()
    shutil.copy(model / "hparams.json", empty)
    words = f"--ckpt={empty}: there is no checkpoint; expected the folder of a run"
    fails(command(model, inference_input_file=source, ckpt=empty), capsys, 1, words)


# --- runs that are gone on with ---------------------------------------------------------------


RUN = {"num_train_steps": 1, "tgt_max_len_infer": 4}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run that was started with relative paths; its folder is below that of its text."""
    home = tmp_path_factory.mktemp("home")
    tiny_runs.corpus(home / "text", 40, dev=2)
    before = os.getcwd()
    os.chdir(home)
    tf.config.run_functions_eagerly(True)
    try:
        assert nmt.main(tiny_runs.flags("text", "run", **RUN)) == 0
    finally:
        tf.config.run_functions_eagerly(False)
        os.chdir(before)
    return home / "run"


def test_changed_settings_are_named(run, monkeypatch, tmp_path, capsys):
    def train(*_):
        raise UserError("training would begin")

    monkeypatch.setattr(trainer, "train", train)
    shutil.copytree(run.parent, tmp_path / "home")
    monkeypatch.chdir(tmp_path / "home")
    log = tmp_path / "home" / "run" / "train.log"
    fails(tiny_runs.flags("text", "run", **RUN), capsys, 1, "training would begin")
    assert "changed: " not in log.read_text()
    argv = tiny_runs.flags("text", "run", **{**RUN, "num_train_steps": 2, "learning_rate": 0.5})
    fails(argv, capsys, 1, "training would begin")
    changed = [line for line in log.read_text().splitlines() if line.startswith("changed: ")]
    assert changed == ["changed: learning_rate 0.01 -> 0.5", "changed: num_train_steps 1 -> 2"]


def test_changes_of_a_run_that_lacks_a_setting():
    now = config.HParams(beam_width=3)
    saved = {**now.as_dict(), "beam_width": 4}
    del saved["dropout"]  # of a release that did not have it
    assert config.changes(saved, now) == ["beam_width 4 -> 3"]


@pytest.mark.parametrize(
    "flags, key",
    [
        ({"mode": "eval"}, "dev_prefix"),
        ({"mode": "tune", "infer_mode": "beam_search"}, "dev_prefix"),
        ({"mode": "lexicon"}, "train_prefix"),
        ({}, "train_prefix"),
    ],
)
def test_a_run_whose_text_is_elsewhere_says_what_to_give(
    run, capsys, monkeypatch, tmp_path, flags, key
):
    monkeypatch.chdir(tmp_path)
    words = (
        rf"text/(dev|train)\..* \({key}=text/(dev|train), counted from {tmp_path}; "
        rf"if the text is elsewhere now, give --{key}\)"
    )
    fails(command(run, **flags), capsys, 1, words)


def test_a_run_continues_elsewhere_with_the_given_text(untraced, run, monkeypatch, tmp_path):
    shutil.copytree(run, tmp_path / "moved")
    monkeypatch.chdir(tmp_path)
    text = run.parent / "text"
    prefixes = {f"{name}_prefix": text / name for name in ("train", "dev", "test")}
    assert nmt.main(command("moved", num_train_steps=2, **prefixes)) == 0
    assert nmt.main(command("moved", mode="eval")) == 0


# --- files ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "source, target, words",
    [
        ("", "", "s and .*t are empty: there is no sentence pair"),
        ("a\n", "", "s has 1, .*t has 0 lines"),
        ("a\nb\n", "a", "s has 2, .*t has 1 lines"),
        ("a\nb", "a\nb\n", None),
    ],
)
def test_the_quick_look_at_a_corpus(tmp_path, source, target, words):
    paths = tmp_path / "s", tmp_path / "t"
    for path, content in zip(paths, (source, target)):
        path.write_text(content)
    if words is None:
        text_files.require_parallel(*paths)
        return
    for look in (text_files.require_parallel, text_files.count_parallel):
        with pytest.raises(UserError, match=words):
            look(*paths)


# --- settings ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "flags, words",
    [
        (
            {"cell": "rnnsearch", "read_heads": 4},
            "--read_heads has no effect: the cell 'rnnsearch'",
        ),
        (
            {"cell": "luong", "gate_start": 3},
            "--gate_start .* does not read it, only ntm_attention",
        ),
        ({"cell": "luong", "shift_range": 1}, "--shift_range has no effect"),  # the default, too
        ({"cell": "mematt", "num_rounds": 2}, "only kvmematt$"),
        ({"cell": "cache", "bucket_pool": 9}, "only a model whose sentences may come in any order"),
        (
            {"cell": "transformer", "encoder_type": "transformer", "unit_type": "gru"},
            "--unit_type has no effect with .*: only a model with recurrent layers reads it",
        ),
        (
            {
                "length_penalty_weights": "0,1",
                "infer_mode": "beam_search",
                "coverage_penalty_weight": 0.2,
            },
            "no length penalty is chosen then",
        ),
        ({"compile_memory": False}, "only a model with the memory of the cells ntm, mad and dnc"),
        (
            {"cell": "luong", "plateau_patience": 3},
            "--plateau_patience has no effect with decay_sc",
        ),
        (
            {"vocab_prefix": "v", "vocab_size": 9},
            "--vocab_size has no effect with vocab_prefix='v'",
        ),
        ({"vocab_prefix": "v", "vocab_min_frequency": 2}, "vocab_min_frequency has no effect with"),
    ],
)
def test_a_setting_without_effect_is_refused(tmp_path, capsys, flags, words):
    fails(command(tmp_path / "out", **flags), capsys, 2, words)
    assert not (tmp_path / "out").exists()


def test_a_run_does_not_continue_with_a_setting_of_another_cell(run, capsys):
    fails(command(run, num_rounds=1), capsys, 2, "the cell 'luong' does not read it, only kvmematt")


def test_what_is_printed_is_what_training_would_take(capsys):
    argv = ["--print_hparams", "--cell=luong"]
    fails([*argv, "--head_start=tape"], capsys, 2, "--head_start has no effect: the cell 'luong'")
    assert nmt.main([*argv, "--attention=bahdanau"]) == 0
    assert json.loads(capsys.readouterr().out)["attention"] == "bahdanau"


@pytest.mark.parametrize(
    "flags, words",
    [
        ({"neural_cache_theta": 0.5}, "--neural_cache_theta has no effect without neural_cache_si"),
        ({"shortlist_best": 100}, "--shortlist_best has no effect .*give --shortlist"),
        ({"sampling_top_k": 5}, "with infer_mode='beam_search': give --infer_mode=sample"),
        (
            {
                "translation_memory": "a,b",
                "translation_memory_lambda": 0.5,
                "translation_memory_tau": 9.0,
            },
            "--translation_memory_tau has no effect with .*lambda=0.5 and one neighbour",
        ),
        ({"infer_mode": "greedy", "beam_width": 3}, "beam_width .* give --infer_mode=beam_search"),
    ],
)
def test_a_setting_of_a_search_that_is_not_made_is_refused(model, source, capsys, flags, words):
    fails(command(model, inference_input_file=source, **flags), capsys, 2, words)
    given = [f"--{name}={value}" for name, value in flags.items()]
    fails(["--print_hparams", *given], capsys, 2, words)
    fails([f"--model={model}", *given], capsys, 2, words, translate.main)
    if "sampling_top_k" not in flags:
        fails([f"--model={model}", *given], capsys, 2, words, serve.main)


@pytest.mark.parametrize("mode", ["infer", "score", "align", "eval", "export"])
def test_a_trained_model_takes_no_setting_of_training(model, source, capsys, mode):
    files = {"inference_input_file": source, "inference_ref_file": source}
    argv = command(model, f"--mode={mode}", **({} if mode == "export" else files))
    for name, hint in (
        ("batch_size", "did you mean --infer_batch_size?"),
        ("dropout", "training does"),
        ("src_max_len", "did you mean --src_max_len_infer?"),
        ("train_prefix", "training does"),
        ("max_len_policy", "training does"),
    ):
        words = re.escape(f"--mode={mode} does not use --{name}: {hint}")
        fails([*argv, f"--{name}={config.FIELDS[name].default}"], capsys, 2, words)


@pytest.mark.parametrize("mode", ["lexicon", "shortlist"])
def test_what_learns_from_the_text_alone_takes_no_other_settings(model, capsys, mode):
    for flag, reader in (("--beam_width=3", "translation"), ("--learning_rate=3", "training")):
        words = re.escape(f"--mode={mode} does not use {flag.partition('=')[0]}: {reader} does")
        fails(command(model, flag, f"--mode={mode}"), capsys, 2, words)


def test_a_file_may_have_settings_of_a_search_that_is_not_made(untraced, model, source, tmp_path):
    path = tmp_path / "h.json"
    path.write_text('{"neural_cache_theta": 0.5, "sampling_top_k": 5}')
    argv = command(model, inference_input_file=source, inference_output_file=tmp_path / "out")
    assert nmt.main([*argv, f"--hparams_path={path}"]) == 0
    assert nmt.main([f"--hparams_path={path}", "--print_hparams"]) == 0


def test_a_model_does_not_change_its_direction(run, model, source, capsys):
    """Its vocabularies may be one file, and then nothing else would tell."""
    words = r"other settings: src='tgt' \(saved: 'src'\), tgt='src' \(saved: 'tgt'\)"
    before = tree(run)
    fails(command(run, src="tgt", tgt="src"), capsys, 2, words)
    assert tree(run) == before
    argv = command(model, inference_input_file=source, src="tgt", tgt="src")
    fails(argv, capsys, 2, words)


def test_a_file_may_have_settings_of_several_cells(tmp_path):
    path = tmp_path / "h.json"
    path.write_text('{"cell": "rnnsearch", "read_heads": 4, "attention_size": 8}')
    settings = config.settings_for_training(str(tmp_path), str(path), {"cell": "ntm"})
    assert (settings.cell, settings.read_heads) == ("ntm", 4)


OF_DNC = {name for name in config.FIELDS if name.startswith("dnc_")}
IDLE = {"coverage": {"coverage_size"}, "dnc": {"dnc_mask_floor"}, "mad": OF_DNC}


@pytest.mark.parametrize(
    "cell, chosen, idle",
    [
        *((cell, {}, IDLE.get(cell, set())) for cell in config.CELLS),
        ("coverage", {"coverage_model": "neural"}, {"max_fertility"}),
        ("dnc", {"dnc_masking": True}, set()),
        ("mad", {"external_addressing": "dnc", "dnc_masking": True},
         {"shift_range", "address_start", "head_start"}),
    ],
)  # fmt: skip
def test_a_cell_takes_its_own_settings(cell, chosen, idle, tmp_path):
    """All at once, but for those that are idle with the kind of memory that is chosen."""
    names = config.fields_of(config.cell_spec(cell).options).keys() - idle
    settings = {name: config.FIELDS[name].default for name in names}
    given = {"cell": cell, **settings, **chosen}
    assert config.settings_for_training(str(tmp_path), None, given)


def test_weights_that_are_none_are_named_before_the_text_is_read(tmp_path, capsys):
    data = tiny_runs.corpus(tmp_path / "text", 40)
    argv = tiny_runs.flags(data, tmp_path / "out", trainable_parameters="cell/*, source_embed")
    assert nmt.main(argv) == 2
    captured = capsys.readouterr()
    assert captured.out == ""  # no vocabulary, nothing encoded
    words = (
        "'source_embed' is no weight of this model: the nearest of its 12 are source_embedding, "
    )
    assert words in captured.err
    assert captured.err.count(",") == 2  # three of them, however many there are


@pytest.mark.parametrize(
    "flag, words",
    [
        ("--num_gpus=1", "there is no flag --num_gpus: --distribution=mirrored trains on all GPUs"),
        ("--data_prefix=x", "--train_prefix, --dev_prefix and --test_prefix name the text"),
        ("--attention_architecture=gnmt", "--cell chooses the model"),
        ("--sos=<s>", "no flag --sos: a translation starts from <s>"),
        ("--num_buckets=5", "--bucket_pool"),
        ("--time_major", "--time_major: not available"),
    ],
)
def test_flags_of_other_programs_are_explained(capsys, flag, words):
    fails([flag], capsys, 2, words)


# The flags of nmt/nmt.py, and start_decay_step and source_reverse of its earlier versions.
NMT_FLAGS = """
attention attention_architecture avg_ckpts batch_size beam_width check_special_token ckpt
colocate_gradients_with_ops coverage_penalty_weight decay_scheme dev_prefix dropout embed_prefix
encoder_type eos forget_bias hparams_path infer_batch_size infer_mode inference_input_file
inference_list inference_output_file inference_ref_file init_op init_weight jobid language_model
learning_rate length_penalty_weight log_device_placement max_gradient_norm max_train metrics
num_buckets num_decoder_layers num_embeddings_partitions num_encoder_layers num_gpus
num_inter_threads num_intra_threads num_keep_ckpts num_layers num_sampled_softmax num_train_steps
num_translations_per_input num_units num_workers optimizer out_dir output_attention
override_loaded_hparams pass_hidden_state random_seed residual sampling_temperature scope
share_vocab sos source_reverse src src_max_len src_max_len_infer start_decay_step
steps_per_external_eval steps_per_stats subword_option test_prefix tgt tgt_max_len
tgt_max_len_infer time_major train_prefix unit_type use_char_encode vocab_prefix warmup_scheme
warmup_steps
""".split()


def test_every_flag_of_tensorflow_nmt_is_one_here_or_explained():
    flags = set(nmt.define_flags())
    explained = set(OTHER_SETTINGS)
    assert not flags & explained
    assert set(NMT_FLAGS) <= flags | explained
    page = (ROOT / "docs" / "from_tensorflow_nmt.md").read_text(encoding="utf-8")
    assert [name for name in set(NMT_FLAGS) - flags if f"`{name}`" not in page] == []


@pytest.mark.parametrize("flag", sorted(OTHER_SETTINGS))
def test_what_explains_a_flag_names_flags_that_are(flag):
    names = re.findall(r"--(\w+)", OTHER_SETTINGS[flag])
    assert set(names) <= set(nmt.define_flags())


def test_capitals_of_a_choice_do_not_matter():
    values, explicit = nmt.parse(["--cell=Luong", "--infer_mode=Beam_Search"])
    assert (values.cell, explicit["infer_mode"]) == ("luong", "beam_search")


@pytest.mark.parametrize(
    "flag, message",
    [
        ("--batch_size=0.5", "flag --batch_size=0.5: expected int"),
        ("--batch_size=", "flag --batch_size=: expected int"),
        ("--jobid=a", "flag --jobid=a: expected int"),
        ("--dropout=0,2", "flag --dropout=0,2: expected float"),
        ("--bleu_lowercase=maybe", "flag --bleu_lowercase=maybe: expected true or false"),
    ],
)
def test_a_value_of_another_type_is_named_with_the_type(capsys, flag, message):
    assert nmt.main([flag]) == 2
    assert capsys.readouterr().err == f"tfmann: {message}\n"


def test_packed_training_text_is_named(tmp_path, capsys):
    for name in ("train.src.gz", "train.tgt.gz"):
        (tmp_path / name).touch()
    prefix = tmp_path / "train"
    argv = command(tmp_path / "out", src="src", tgt="tgt", train_prefix=prefix, dev_prefix=prefix)
    fails(argv, capsys, 1, rf"no such file: .*src \(decompress {prefix}\.src\.gz, or give it to")


@pytest.mark.parametrize("name", ["hparams_path", "data"])
def test_a_second_file_of_settings_is_refused(capsys, name):
    words = f"flag --{name}=b: already defined as a; leave one of them out"
    fails(["--print_hparams", f"--{name}=a", f"--{name}=b"], capsys, 2, words)


@pytest.mark.parametrize(
    "name",
    ["ckpt", "ensemble", "inference_output_file", "inference_prefix_file", "alignment_file",
     "inference_constraint_file", "inference_ref_file", "inference_contrast_file"],
)  # fmt: skip
def test_an_empty_name_of_a_file_is_refused(run, capsys, name):
    """Else the best weights, one model, or no constraints would be taken without a word."""
    flags = {"inference_input_file": __file__, name: ""}
    fails(command(run, **flags), capsys, 2, f"--{name} is empty: give a name, or leave the flag")


@pytest.mark.parametrize("main", [inspection.main, serve.main])
def test_an_empty_checkpoint_is_refused(capsys, main):
    with pytest.raises(SystemExit, match="2"):
        main(
            [f"--model={ROOT}", "--input=a", "--ckpt="] if main == inspection.main else ["--ckpt="]
        )
    assert "argument --ckpt: it is empty: give a name" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["hparams_path", "data"])
def test_an_empty_name_of_a_file_of_settings_is_refused(capsys, name):
    """As from a variable of the shell that is not set; defaults would be trained with."""
    fails(["--print_hparams", f"--{name}="], capsys, 2, f"--{name} is empty: give a name")


def test_an_empty_text_is_answered_with_a_note(model, tmp_path, capsys):
    empty = tmp_path / "empty"
    empty.touch()
    argv = command(model, inference_input_file=empty, inference_output_file=tmp_path / "out")
    assert nmt.main(argv) == 0
    assert f"{empty} is empty: no translation\n" in capsys.readouterr().err
    assert (tmp_path / "out").read_bytes() == b""
