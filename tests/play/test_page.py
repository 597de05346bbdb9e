"""The page in a real browser, and the addresses behind it."""

import json
import threading
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
import pytest
from helpers.http_server import served
from helpers.play_page import DRAWN, choose, needs_browser, text, tips, trace_of

from tfmann.play import library, pages


def test_the_files_of_the_page_are_served_without_other_hosts(client):
    scripts = [f"/{path.name}" for path in Path(pages.__file__).parent.glob("static/*.js")]
    assert "/play.js" in scripts
    for path in ("/", "/play.css", *scripts):
        status, body = client.get(path)
        assert status == 200
        hosts = body.replace("http://www.w3.org/2000/svg", "")
        assert "http://" not in hosts and "https://" not in hosts
    status, value = client.get("/play/models")
    assert status == 200 and {model["name"] for model in value["models"]} >= {"ntm", "cache"}


@pytest.mark.parametrize(
    "body, status",
    [
        ({}, 422),
        ({"model": "luong", "lines": []}, 422),
        ({"model": "luong", "lines": ["a"], "more": 1}, 422),
        ({"model": "luong", "lines": ["a"], "prefix": "b"}, 422),
        ({"model": "none", "lines": ["a"]}, 404),
        ({"model": "luong", "lines": ["a"] * 25}, 413),
        ({"model": "luong", "lines": ["a"], "prefix": ["b"] * 201}, 413),
    ],
)
def test_questions_that_cannot_be_answered_are_refused(client, body, status):
    answered_status, answer = client.post("/play/trace", body)
    assert answered_status == status and set(answer) == {"error"}


def test_the_server_does_not_end_while_a_model_is_loaded(monkeypatch):
    """A process that ends while another thread is in TensorFlow would abort."""
    pytest.importorskip("uvicorn", reason="the extra `serve` is not installed")
    loaded, may_end = [], threading.Event()

    def load_slowly():
        may_end.wait(60)
        loaded.append(True)

    models = library.Library([])
    monkeypatch.setattr(models, "warm_up", load_slowly)
    with served(pages.make_app(models)):
        assert not loaded
        threading.Timer(0.5, may_end.set).start()
    assert loaded


@needs_browser
def test_the_page_opens_with_a_model_that_writes_to_a_memory(page, client):
    page.open(f"http://127.0.0.1:{client.port}/")
    page.wait(DRAWN.format(1))
    assert text(page, ".stage h2") == "Neural Turing machine"


@needs_browser
def test_the_page_shows_a_translation_at_once(page, client):
    assert text(page, ".stage h2") == "Luong attention"
    assert text(page, "#where") == "1 of 14"
    trace = trace_of(client, "luong")
    page.key("End")
    words = page.run(
        "[...document.querySelectorAll('.target .word')].map((word) => word.innerText)"
    )
    assert words == [*trace["tokens"][:-1], "end"]
    weights = page.run(
        "[...document.querySelectorAll('figure rect[data-tip]')].map((cell) => cell.dataset.tip)"
    )
    shares = [float(tip.rpartition("\n")[2]) for tip in weights]
    attention = [weight for row in trace["arrays"]["alignments"] for weight in row]
    assert shares == pytest.approx(attention, abs=6e-4)


@needs_browser
def test_words_of_the_invented_language_have_their_meaning_below(page, client):
    glosses = client.get("/play/models")[1]["glosses"]
    words = trace_of(client, "luong")["source_tokens"]
    below = page.run(
        "[...document.querySelectorAll('.source .word small')].map((gloss) => gloss.innerText)"
    )
    assert below == [glosses.get(word, "") for word in words]
    assert "merchant" in below and "(past)" in below


@needs_browser
def test_the_keyboard_steps_plays_and_pauses(page):
    page.run("document.activeElement.blur()")
    for key, where in (
        ("ArrowRight", "2 of 14"),
        ("ArrowRight", "3 of 14"),
        ("ArrowLeft", "2 of 14"),
        ("End", "14 of 14"),
        ("Home", "1 of 14"),
    ):
        page.key(key)
        assert text(page, "#where") == where
    assert page.run("document.querySelectorAll('.target .word.later').length") == 13
    assert "also" in text(page, "#live")
    page.key(" ", "Space")
    page.wait("document.querySelector('#where').innerText !== '1 of 14'", 10)
    page.key(" ", "Space")
    assert page.run("document.querySelector('#play').getAttribute('aria-label')") == "Play"


@needs_browser
def test_another_word_changes_what_follows_and_can_be_taken_back(page):
    page.key("End")
    before = text(page, ".target")
    page.run("document.querySelectorAll('.target .word')[5].click()")
    page.run("document.querySelector('.other input').value = 'will'")
    page.run("document.querySelector('.other').requestSubmit()")
    page.wait("document.querySelector('.undo') && !document.querySelector('.stage.busy')")
    page.key("End")
    assert text(page, "#where") == "15 of 15"
    after = text(page, ".target")
    assert after.startswith("also Darcel and the merchant will give the") and after != before
    assert page.run("document.querySelectorAll('.word.changed').length") > 0
    page.run("document.querySelector('.undo button').click()")
    page.wait("!document.querySelector('.undo') && !document.querySelector('.stage.busy')")
    page.key("End")
    assert text(page, ".target") == before


@pytest.mark.quick("luong", "kvmematt", "cache")
@needs_browser
@pytest.mark.parametrize("entry", library.shipped(), ids=lambda entry: entry.name)
def test_every_model_is_drawn_at_every_step(page, entry):
    page.run(
        f"(document.querySelector('#model-0').value = {entry.name!r},"
        "document.querySelector('#model-0').dispatchEvent(new Event('change')))"
    )
    page.wait(f"document.querySelector('.stage h2').innerText === {entry.title!r}")
    page.wait(DRAWN.format(1))
    steps = page.run("Number(document.querySelector('#scrub').max)")
    page.key("Home")
    for _ in range(steps):
        page.key("ArrowRight")
    assert text(page, "#where") == f"{steps + 1} of {steps + 1}"
    assert page.run("document.querySelectorAll('figure svg[role=img]').length") > 0
    markup = page.run("document.querySelector('.panels').innerHTML")
    assert "NaN" not in markup and "undefined" not in markup


@needs_browser
def test_two_models_are_compared(page):
    page.run("document.querySelector('#compare').click()")
    page.wait(DRAWN.format(2))
    page.key("End")
    texts = page.run("[...document.querySelectorAll('.target')].map((row) => row.innerText)")
    assert len(texts) == 2 and all("Darcel" in words for words in texts)


@needs_browser
def test_both_models_answer_if_the_second_is_asked_while_the_first_answers(page):
    page.run("document.querySelector('#compare').click()")
    page.wait(DRAWN.format(2))
    page.run("document.querySelectorAll('#stages .target .word')[2].click()")
    choices = [f"document.querySelectorAll('#stage-{i} .choice')[1]" for i in (0, 1)]
    forced = [page.run(f"{choice}.querySelector('span').innerText") for choice in choices]
    page.run(f"({choices[0]}.click(), {choices[1]}.click())")
    page.wait("!document.querySelector('.stage.busy')")
    page.wait("document.querySelectorAll('.undo').length === 2", 10)
    words = [
        page.run(f"document.querySelectorAll('#stage-{i} .target .word')[2].textContent")
        for i in (0, 1)
    ]
    assert words == forced


@needs_browser
@pytest.mark.parametrize("width", [320, 400, 1200])
def test_nothing_is_wider_than_the_window(page, width):
    page.size(width, 800, dark=width == 400)
    assert page.run("document.documentElement.scrollWidth") <= width


@needs_browser
def test_everything_that_can_be_used_has_a_name(page):
    unnamed = page.run(
        "[...document.querySelectorAll('button, input, select, textarea, svg[role=img]')]"
        ".filter((one) => one.offsetParent !== null || one.tagName === 'svg')"
        ".filter((one) => !(one.getAttribute('aria-label') || one.innerText?.trim() ||"
        " one.labels?.length)).map((one) => one.outerHTML.slice(0, 120))"
    )
    assert unnamed == []


@needs_browser
def test_a_figure_is_saved_as_a_picture(page):
    page.run(
        "(() => { window.saved = []; window.names = []; const real = URL.createObjectURL;"
        " URL.createObjectURL = (blob) => {"
        "   window.saved.push([blob.type, blob.size]); return real.call(URL, blob); };"
        " HTMLAnchorElement.prototype.click = function () { window.names.push(this.download); };"
        "})()"
    )
    for number in (0, 1):
        page.run(f"document.querySelectorAll('figcaption button')[{number}].click()")
    page.wait("window.names.length === 2", 20)
    assert page.run("window.names") == ["luong-attention.svg", "luong-attention.png"]
    saved = dict(page.run("window.saved"))
    assert saved["image/svg+xml"] > 10_000 and saved["image/png"] > 10_000


@needs_browser
def test_coverage_and_fertility_are_those_of_the_trace(page, client):
    choose(page, "coverage")
    page.key("End")
    arrays = trace_of(client, "coverage")["arrays"]
    shown = [float(tip.rpartition("\n")[2]) for tip in tips(page, "Coverage")]
    assert shown == pytest.approx([share for row in arrays["coverage"] for share in row], abs=6e-4)
    columns = [tip.split("\n")[1:] for tip in tips(page, "Fertility")]
    shown = [[float(line.split()[1]) for line in column] for column in columns]
    expected = [
        [need, need * share] for need, share in zip(arrays["fertility"][-1], arrays["coverage"][-1])
    ]
    assert np.array(shown) == pytest.approx(np.array(expected), abs=6e-4)


@needs_browser
def test_past_and_future_are_those_of_the_trace(page, client):
    choose(page, "past_future")
    arrays = trace_of(client, "past_future")["arrays"]
    shown = [float(tip.rpartition("\n")[2]) for tip in tips(page, "Past and Future")]
    expected = [step[0] for name in ("past_change", "future_change") for step in arrays[name]]
    assert shown == pytest.approx(expected, abs=6e-4)


@needs_browser
def test_the_sentence_before_has_the_tokens_that_the_model_read(page, client):
    lines = [" Ajla  zolda doru pagir .", "merka alte nomra ve pentu skribir ."]
    question = urlencode({"model": "previous", "text": "\n".join(lines), "step": 0})
    page.open(f"http://127.0.0.1:{client.port}/#{question}")
    page.wait(DRAWN.format(1))
    trace = client.post("/play/trace", {"model": "previous", "lines": lines})[1]
    shown = [tip.split("\n") for tip in tips(page, "Attention to the sentence before")]
    words = [*lines[0].split(), "</s>"]
    assert [label for label, _ in shown] == [f"{t} ← {s}" for t in trace["tokens"] for s in words]
    weights = [weight for row in trace["arrays"]["previous_alignments"] for weight in row]
    assert [float(weight) for _, weight in shown] == pytest.approx(weights, abs=6e-4)


@needs_browser
def test_a_cache_tells_how_long_ago_a_word_was_written(page, client):
    choose(page, "cache")
    slots = trace_of(client, "cache")["slots"]
    words = sorted((age, word) for age, word in zip(slots["ages"], slots["words"]) if word)
    _, *tiles = tips(page, "Cache, newest first")
    shown = [tuple(tip.split("\n")) for tip in tiles]
    assert [(word, ago) for word, _, ago in shown] == [
        (word, f"{age + 1} word{'s' if age else ''} ago") for age, word in words
    ]
    assert shown[0][2] == "1 word ago"


@needs_browser
def test_heads_have_the_numbers_of_their_names(page, client):
    trace = trace_of(client, "ntm")
    trace["heads"]["read_head_1"] = trace["heads"]["read_head_0"]
    titles = page.run(
        f"import('/panels.js').then(({{ panels }}) => panels({json.dumps(trace)}, 0, 'ntm')"
        ".map(({ title }) => title).filter((title) => title.includes(' head')))"
    )
    assert titles == ["Read head 0", "Write head", "Read head 1"]


@needs_browser
def test_votes_are_those_of_the_trace(page, client):
    choose(page, "neural_cache")
    page.key("End")
    trace = trace_of(client, "neural_cache")
    memory, last = trace["word_memory"], len(trace["tokens"]) - 1
    share, *tiles = tips(page, "Memory of words, greatest vote first")
    assert share == f"λ {memory['share'][last]:.3f}"
    votes = zip(memory["weights"][last], memory["entries"])
    expected = sorted(((vote, entry) for vote, entry in votes if vote > 0), key=lambda v: -v[0])
    assert tiles == [
        f"{entry['word']}\nvote {vote:.3f}\n{entry['origin']}" for vote, entry in expected
    ]
    rows = np.array(memory["weights"])
    order = np.argsort(-rows.sum(axis=0), kind="stable")[:16]
    shown = [float(tip.rpartition("\n")[2]) for tip in tips(page, "Votes over the sentence")]
    curves = [value for name in ("share", "memory", "model") for value in memory[name]]
    assert shown == pytest.approx([*rows[:, order].ravel(), *curves], abs=6e-4)


@needs_browser
def test_nothing_votes_while_the_source_is_read(page, client):
    """A model that reads the source itself has steps before its first word."""
    trace = trace_of(client, "ntm")
    steps, boundary = len(trace["step_tokens"]), trace["boundary"]
    words = steps - boundary
    assert boundary > 0
    trace["word_memory"] = {
        "share": [0.1] * words, "model": [0.5] * words, "memory": [0.2] * words,
        "entries": [{"word": "two", "origin": "1 word ago"}], "weights": [[0.25]] * words,
    }  # fmt: skip
    tips = page.run(
        "import('/panels.js').then(({ panels }) => { const colors = { ink: '#000', soft: '#777',"
        " wash: '#eee', read: '#00f', write: '#f00', mark: '#fa0', card: '#fff', room: 700 };"
        "const cells = (figure) => figure.draw(colors).querySelectorAll('[data-tip]').length;"
        f"const trace = {json.dumps(trace)};"
        "return trace.step_tokens.map((_, step) => panels(trace, step, 'ntm')"
        ".filter(({ title }) => /of words|Votes/.test(title)).map(cells)); })"
    )
    # lambda alone, then a word with it; a cell for each step in each of four bands
    assert [tiles for tiles, _ in tips] == [1] * boundary + [2] * words
    assert {cells for _, cells in tips} == {tips[0][1]} and tips[0][1] % steps == 0


@needs_browser
def test_a_word_that_the_model_cannot_write_forces_nothing(page):
    page.key("End")
    before = text(page, ".target")
    page.run(
        "((field) => { field.value = 'no-such-word'; field.form.requestSubmit(); })"
        "(document.querySelector('.nearest input'))"
    )
    page.wait("!document.querySelector('#message').hidden")
    page.wait("!document.querySelector('.stage.busy')")
    assert "is not in the model" in text(page, "#message")
    assert not page.run("document.querySelectorAll('.undo').length")
    assert "no-such-word" not in page.run("location.hash")
    assert text(page, ".target") == before
    [refused] = page.errors
    assert "422" in refused["text"]
    page.errors.clear()


@needs_browser
def test_an_address_of_reading_and_writing_is_drawn_once(page):
    choose(page, "memdec")
    titles = page.run("[...document.querySelectorAll('figure')].map((f) => f.dataset.title)")
    assert titles == ["Attention", "Memory", "Address of reading and writing"]


@needs_browser
@pytest.mark.parametrize(
    "name, words", [("mematt", "copy of the annotations"), ("kvmematt", "The values never change")]
)
def test_the_note_on_rewriting_is_that_of_the_cell(page, name, words):
    choose(page, name)
    assert words in text(page, ".panels")
    assert ("keys" in text(page, ".panels")) == (name == "kvmematt")
