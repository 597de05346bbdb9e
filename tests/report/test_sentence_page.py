"""`tfmann report --out_dir --sentence`: one text through one model, as a page."""

import base64
import re

import pytest
from helpers.command_line import WORDS, write_model

from tfmann import api
from tfmann.cli.report import main
from tfmann.data.subword import make_segmenter
from tfmann.data.subword_learning import learn_bpe
from tfmann.data.text_files import write_lines
from tfmann.decoding.translation import without_eos
from tfmann.report import figures
from tfmann.visualization import sentence_figures

pytestmark = pytest.mark.usefixtures("untraced")

SOURCE = ["der hund", "die katze sieht größe"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    changes = {"cell": "cache", "cache_size": 4}
    return write_model(tmp_path_factory.mktemp("model"), "rnnsearch", **changes)


def page(out, *argv):
    assert main([f"--output={out}", *argv]) == 0
    return (out / "index.html").read_text(encoding="utf-8")


def test_a_document_is_translated_and_drawn(folder, tmp_path):
    text = page(tmp_path, f"--out_dir={folder}", *(f"--sentence={line}" for line in SOURCE))
    model = api.load(str(folder), num_translations_per_input=3)
    for n_best in model.translate(SOURCE, documents=[0, 0]):
        for hypothesis in n_best:
            escaped = hypothesis.text.replace("<", "&lt;").replace(">", "&gt;")
            assert f'{hypothesis.score:.4f}</dt><dd dir="auto">{escaped}</dd>' in text
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {
        "index.html", "sentence_1_attention.png", "sentence_2_attention.png", "sentence_2_cache.png"
    }  # fmt: skip
    embedded = [base64.b64decode(image) for image in re.findall(r"base64,([^\"]+)", text)]
    files = [(tmp_path / name).read_bytes() for name in sorted(names - {"index.html"})]
    assert embedded == files
    assert "http" not in re.sub(r"http-equiv", "", text), "the page asks the network"


def test_figures_are_of_the_reference_if_there_is_one(folder, tmp_path):
    text = page(tmp_path, f"--out_dir={folder}", "--sentence=hund", "--reference=KATZE & HUND")
    assert 'of the reference: <span dir="auto">KATZE &lt;unk&gt; HUND &lt;/s&gt;</span>' in text
    assert "KATZE &amp; HUND" in text


def test_a_page_shows_any_bytes_and_no_figures_of_an_earlier_call(folder, tmp_path):
    mine = [tmp_path / name for name in ("sentence_1_mine.png", "sentence_2.png")]
    for path in mine:
        path.write_bytes(b"mine")
    page(tmp_path, f"--out_dir={folder}", *(f"--sentence={line}" for line in SOURCE))
    assert (tmp_path / "sentence_2_cache.png").exists()
    text = page(tmp_path, f"--out_dir={folder}", "--sentence=caf\udce9 \u202ehund")
    assert r"caf\udce9" in text and "\u202e" not in text and "\ufffdhund" in text
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"index.html", "sentence_1_attention.png", *(path.name for path in mine)}


def test_its_own_translation_has_the_subwords_that_the_model_chose(tmp_path, monkeypatch):
    write_lines(tmp_path / "text", [" ".join(WORDS)] * 9)
    learn_bpe([tmp_path / "text"], tmp_path / "codes", num_merges=12)
    settings = {"subword_option": "bpe", "subword_model": str(tmp_path / "codes")}
    units = sorted(set(make_segmenter(*settings.values()).segment(" ".join(WORDS))))
    (tmp_path / "model").mkdir()
    folder = write_model(tmp_path / "model", words=units, **settings)
    model = api.load(str(folder))
    best = [n_best[0] for n_best in model.translate(WORDS)]
    again = [model.tokens((line, one.text))[1] for line, one in zip(WORDS, best)]
    chosen = [[*without_eos(one.tokens), "</s>"] for one in best]  # a cut one has none itself
    number = next(i for i in range(len(WORDS)) if again[i] != chosen[i])
    drawn = []
    monkeypatch.setattr(figures, "trace_figures", lambda trace: drawn.append(trace.tokens) or ())
    page(tmp_path / "page", f"--out_dir={folder}", f"--sentence={WORDS[number]}")
    monkeypatch.setattr(sentence_figures, "write_sentence", lambda t, *_: drawn.append(t.tokens))
    write_lines(tmp_path / "in", WORDS)
    options = [f"--input={tmp_path / 'in'}", f"--sentence={number}", f"--figures={tmp_path}"]
    assert main(["memory", f"--out_dir={folder}", *options]) == 0
    assert drawn == [chosen[number]] * 2


@pytest.mark.parametrize(
    ("argv", "status", "words"),
    [
        (["--sentence=a", "--neural_cache_theta=1"], 2, "no effect without neural_cache_size"),
        (["--sentence=a", "--sentence=b", "--reference=c"], 2, "2 --sentence and 1 --reference"),
        (["--sentence=a", "--n_best=0"], 2, "--n_best=0"),
        (["--sentence=a", "--n_best=99"], 2, "--n_best=99: expected 1 to 3, as many as this model"),
        (["--sentence=a", "--sentence=  "], 1, "sentence 2 is blank"),
    ],
)
def test_mistakes_are_reported(folder, tmp_path, argv, status, words, capsys):
    out = tmp_path / "out"
    assert main([f"--out_dir={folder}", f"--output={out}", *argv]) == status
    assert words in capsys.readouterr().err
    assert not out.exists()


def test_without_a_model_it_says_so(tmp_path, capsys):
    assert main([f"--out_dir={tmp_path}", "--sentence=a"]) == 1
    assert "no trained model" in capsys.readouterr().err


def test_the_votes_of_a_neural_cache_are_drawn_and_listed(tmp_path):
    (tmp_path / "model").mkdir()
    model = write_model(tmp_path / "model", "rnnsearch")
    settings = ["--neural_cache_size=3", "--neural_cache_lambda=0.5"]
    out = tmp_path / "page"
    text = page(out, f"--out_dir={model}", *(f"--sentence={line}" for line in SOURCE), *settings)
    assert {path.name for path in out.glob("*memory*")} == {"sentence_2_word_memory.png"}
    assert "word memory: its share, and the entries" in text
    (tmp_path / "in").write_text("".join(f"{line}\n" for line in SOURCE), "utf-8")
    (tmp_path / "ref").write_text("HUND KATZE\nKATZE\n")
    files = [f"--input={tmp_path / 'in'}", f"--reference={tmp_path / 'ref'}"]
    command = ["memory", f"--out_dir={model}", *files, "--sentence=1", f"--figures={tmp_path}"]
    assert main([*command, *settings]) == 0
    table = (tmp_path / "sentence_1_word_memory.md").read_text("utf-8").splitlines()
    assert [row.split(" | ")[0] for row in table[2:]] == ["| `KATZE`", "| `</s>`"]
    trace = api.load(str(model), neural_cache_size=3, neural_cache_lambda=0.5).traces(
        zip(SOURCE, ["HUND KATZE", "KATZE"]), [0, 0]
    )[1]
    memory = trace.word_memory
    share, p_model, p_memory, votes = table[2].split(" | ")[1:]
    assert (share, p_memory) == ("0.5000", f"{memory.memory[0]:.4f}")
    assert float(p_model) == pytest.approx(memory.model[0], abs=1e-4)
    assert set(re.findall(r"`(.*?)`", votes)) == {"HUND (2 words ago)", "KATZE (1 word ago)"}
