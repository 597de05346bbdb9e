"""The command line with `--replace_unk`: two roads to one text, and what it refuses."""

import pytest
from helpers import tiny_runs
from helpers.command_line import LINES, WORDS, command, fails, tree, write_model

from tfmann import config, load, nmt
from tfmann.data import text_files
from tfmann.errors import UserError
from tfmann.training import checkpoint

pytestmark = pytest.mark.usefixtures("untraced_module")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model that often predicts `<unk>`, and a lexicon in its folder."""
    folder = write_model(tmp_path_factory.mktemp("model"))
    arrays = checkpoint.read_arrays(str(folder / "best_bleu"))
    kernel = arrays["model/projection_kernel"]
    often = 3 + WORDS.index("chó")  # what it would say most
    kernel[:, [0, often]] = kernel[:, [often, 0]]
    checkpoint.write(str(folder / "best_bleu"), arrays, None, {})
    (folder / "lexicon.txt").write_text(f"{WORDS[0]} the 0.5\nunbekannt unknown 1\n")
    return folder


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    path = tmp_path_factory.mktemp("source") / "in"
    text_files.write_lines(path, LINES)
    return path


def read(path):
    return path.read_text("utf-8").split("\n")[:-1]


def replace_by_hand(lines, links, lexicon):
    """Translations with the words that the alignments link to `<unk>`."""
    texts = []
    for source, text, link_line in zip(LINES, lines, links):
        words, origin = text.split(), {}
        for link in link_line.split():
            i, j = map(int, link.split("-"))
            origin[j] = source.split(" ")[i]
        for j, word in enumerate(words):
            if word == "<unk>":
                words[j] = lexicon.get(origin[j], origin[j])
        texts.append(" ".join(words))
    return texts


def test_replaced_as_the_alignments_say(model, source, tmp_path):
    """With the run's own lexicon, with another, and with an empty one, which only copies."""
    argv = command(model, inference_input_file=source)
    plain = [f"--inference_output_file={tmp_path / 'p'}", f"--alignment_file={tmp_path / 'l'}"]
    assert nmt.main([*argv, *plain]) == 0
    before, links = read(tmp_path / "p"), read(tmp_path / "l")
    assert sum(line.split().count("<unk>") for line in before) > 3
    (tmp_path / "other").write_text("".join(f"{word} OTHER 1\n" for word in WORDS))
    (tmp_path / "empty").write_text("")
    outputs = {}
    for name, lexicon, flags in (
        ("own", {WORDS[0]: "the", "unbekannt": "unknown"}, []),
        ("other", dict.fromkeys(WORDS, "OTHER"), [f"--lexicon_file={tmp_path / 'other'}"]),
        ("empty", {}, [f"--lexicon_file={tmp_path / 'empty'}"]),
    ):
        out = tmp_path / f"{name}.out"
        where = [f"--inference_output_file={out}", f"--alignment_file={tmp_path / 'again'}"]
        assert nmt.main([*argv, "--replace_unk", *flags, *where]) == 0
        assert read(out) == replace_by_hand(before, links, lexicon), name
        assert read(tmp_path / "again") == links
        outputs[name] = read(out)
    assert outputs["own"] != outputs["other"] != outputs["empty"] != before


def test_a_loaded_model_replaces_them_from_now_on(model, tmp_path):
    (tmp_path / "other").write_text("".join(f"{word} OTHER 1\n" for word in WORDS))
    plain = load(str(model))
    for settings in ({}, {"lexicon_file": str(tmp_path / "other")}):
        replacing = plain.with_search(replace_unk=True, **settings)
        texts = [n_best[0].text for n_best in replacing.translate(LINES)]
        loaded = load(str(model), replace_unk=True, **settings)
        assert texts == [n_best[0].text for n_best in loaded.translate(LINES)]
        assert not any("<unk>" in text for text in texts)
    assert any("OTHER" in text for text in texts)
    wider = replacing.with_search(beam_width=3).translator.text
    assert wider.lexicon is replacing.translator.text.lexicon
    assert wider.lexicon is not replacing.with_search(lexicon_file="").translator.text.lexicon
    assert replacing.with_search(replace_unk=False).translator.text.lexicon is None
    with pytest.raises(UserError, match="no file absent: learn it with"):
        plain.with_search(replace_unk=True, lexicon_file="absent")


@pytest.mark.parametrize(
    "flags, status, words",
    [
        ({"replace_unk": True, "lexicon_file": "absent"}, 1, "no file absent: learn it with"),
        ({"replace_unk": True, "lexicon_file": "bad"}, 1, "bad, line 2: 'b' is no line"),
        ({"lexicon_file": "bad"}, 2, "--lexicon_file has no effect without replace_unk"),
        ({"mode": "eval", "inference_ref_file": "bad", "replace_unk": True,
          "lexicon_file": "absent"}, 1, "no file absent"),
    ],
)  # fmt: skip
def test_what_is_refused(model, source, tmp_path, capsys, monkeypatch, flags, status, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad").write_text("a b 0.5\nb\n")
    before = tree(tmp_path, model)
    argv = command(model, inference_input_file=source, inference_output_file="out", **flags)
    fails(argv, capsys, status, words)
    assert tree(tmp_path, model) == before


def test_cells_and_runs_without(tmp_path, capsys):
    (tmp_path / "in").write_text("x\n")
    saved = config.HParams(cell="dnc", encoder_type="memory", src="src", tgt="tgt")
    config.save(saved, tmp_path / "hparams.json")
    argv = command(tmp_path, "--replace_unk", inference_input_file=tmp_path / "in")
    fails(argv, capsys, 2, "replace_unk=True needs alignments.*'dnc' has no alignments")


def test_training_needs_the_lexicon_first(tmp_path, capsys):
    for name in ("a.src", "a.tgt"):
        (tmp_path / name).write_text("x\n")
    prefixes = {"train_prefix": tmp_path / "a", "dev_prefix": tmp_path / "a", "src": "src"}
    argv = command(tmp_path / "out", "--replace_unk", tgt="tgt", **prefixes)
    fails(argv, capsys, 1, "no file .*out/lexicon.txt: learn it with `tfmann lexicon`")
    assert not (tmp_path / "out").exists()


@pytest.mark.thorough
def test_a_run_scores_what_it_replaces(tmp_path):
    """Of a vocabulary of one word, the full stop, translations are unknown words: all copied."""
    data, out = tiny_runs.corpus(tmp_path / "data", 40), tmp_path / "run"
    (tmp_path / "empty").write_text("")
    changes = {"vocab_size": 4, "num_train_steps": 20, "learning_rate": 0.03}
    argv = tiny_runs.flags(data, out, **changes, replace_unk=True, lexicon_file=tmp_path / "empty")
    assert nmt.main(argv) == 0
    copied = 0
    for source, text in zip(read(data / "dev.src"), read(out / "output_dev")):
        assert set(text.split()) <= {*source.split(), "."}
        copied += len(set(text.split()) - {"."})
    assert copied > 0
