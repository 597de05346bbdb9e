"""What the pointer, the theme, the slider and the address of the page do, in a real browser."""

import re
from urllib.parse import urlencode

import pytest
from helpers.command_line import write_model
from helpers.http_server import served
from helpers.play_page import DRAWN, needs_browser, text, trace_of

from tfmann.play import library

pytestmark = needs_browser
CELL = "figure[data-title=Attention] rect[data-tip]"
TIP = "document.querySelector('#tip')"


def later_words(page):
    return page.run("document.querySelectorAll('.target .word.later').length")


def test_the_pointer_shows_the_number_of_a_cell(page, client):
    trace = trace_of(client, "luong")
    page.key("End")
    columns = len(trace["source_tokens"])
    for t, s in ((2, 1), (7, 4)):
        weight = trace["arrays"]["alignments"][t][s]
        place = page.point(CELL, t * columns + s)
        word, _, number = page.run(f"{TIP}.textContent").rpartition("\n")
        assert word == f"{trace['tokens'][t]} ← {trace['source_tokens'][s]}"
        assert float(number) == pytest.approx(weight, abs=6e-4)
        box = page.run(f"{TIP}.getBoundingClientRect().toJSON()")
        assert box["width"] > 0 and abs(box["x"] - place["x"]) < 60
    page.point("h1")
    assert page.run(f"{TIP}.hidden")


def test_the_pointer_shows_the_probability_of_a_word(page, client):
    trace = trace_of(client, "luong")
    page.key("Home")
    page.point(".target .word", 0)
    assert text(page, "#tip") == f"probability {trace['probs'][0]:.3f}"
    page.point(".target .word", 3)  # not produced yet
    assert page.run(f"{TIP}.hidden")


@pytest.mark.parametrize("width", [320, 400])
def test_a_number_at_the_edge_does_not_leave_the_window(page, width):
    page.size(width, 700)
    page.key("End")
    rights = page.run(
        "[...document.querySelectorAll('.lines .word[data-tip]')]"
        ".map((word) => word.getBoundingClientRect().right)"
    )
    assert max(rights) > width - 60
    place = page.point(".lines .word[data-tip]", rights.index(max(rights)), at=(0.95, 0.5))
    box = page.run(f"{TIP}.getBoundingClientRect().toJSON()")
    assert box["width"] > 0 and box["left"] >= 0 and box["right"] <= width
    assert box["bottom"] <= 700 and not box["top"] <= place["y"] <= box["bottom"]


def test_a_long_sentence_is_seen_whole_in_a_narrow_window(page):
    page.size(320, 700)
    field = "document.querySelector('#text')"
    page.wait(f"{field}.scrollHeight <= {field}.offsetHeight", 10)
    page.size(1200, 900)
    page.wait(f"{field}.offsetHeight < 60", 10)


def brightness(page, name):
    """Mean of red, green and blue of a colour of the page, 0 to 255."""
    color = page.run(f"getComputedStyle(document.body).getPropertyValue({name!r})")
    return sum(map(int, re.findall(r"\d+", color)[:3])) / 3


def test_the_theme_is_switched_and_kept(page):
    def figure():
        return page.run("document.querySelector('figure svg').outerHTML")

    try:
        assert text(page, "#theme") == "Dark"
        light, drawn_light = brightness(page, "background-color"), figure()
        page.click("#theme")
        assert text(page, "#theme") == "Light"
        dark, drawn_dark = brightness(page, "background-color"), figure()
        assert light > 200 and dark < 60
        assert brightness(page, "color") > dark + 120
        assert drawn_dark != drawn_light
        page.open(page.run("location.href"))
        page.wait(DRAWN.format(1))
        assert text(page, "#theme") == "Light"
        assert brightness(page, "background-color") == dark and figure() == drawn_dark
        page.click("#theme")
        assert brightness(page, "background-color") == light and figure() == drawn_light
    finally:
        page.run("localStorage.clear()")


def test_the_theme_is_that_of_the_system_at_first(page):
    page.size(1200, 900, dark=True)
    page.wait("document.querySelector('#theme').innerText === 'Light'", 10)
    assert brightness(page, "background-color") < 60
    page.size(1200, 900)
    page.wait("document.querySelector('#theme').innerText === 'Dark'", 10)
    assert brightness(page, "background-color") > 200


def test_the_page_needs_no_storage(page):
    """A browser that refuses cookies throws an error where a page asks for its storage."""
    denied = "Object.defineProperty(window, 'localStorage', {get() { throw new Error('denied'); }})"
    script = page.call("Page.addScriptToEvaluateOnNewDocument", source=denied)
    try:
        page.open(page.run("location.href"))
        page.wait(DRAWN.format(1), 20)
        page.click("#theme")
        assert text(page, "#theme") == "Light"
    finally:
        page.call("Page.removeScriptToEvaluateOnNewDocument", **script)


def test_the_slider_moves_to_its_step(page):
    for share in (0.5, 1.0, 0.0):
        page.click("#scrub", at=(min(max(share, 0.005), 0.995), 0.5))
        step = round(13 * share)
        shown = int(text(page, "#where").split()[0]) - 1
        assert abs(shown - step) <= (1 if share == 0.5 else 0)  # between two steps
        assert page.run("Number(document.querySelector('#scrub').value)") == shown
        assert later_words(page) == 13 - shown


def test_the_slider_of_a_long_sentence_stays_in_the_window(page, client):
    given = {"text": "anko Darkel ve merka donir ta .", "prefix": "the merchant " * 25}
    question = urlencode({"model": "luong", **given})
    page.open(f"http://127.0.0.1:{client.port}/#{question}")
    page.wait(DRAWN.format(1))
    assert page.run("document.querySelectorAll('#ticks li').length") > 40
    for element in ("#scrub", "#ticks", "#where"):
        box = page.run(f"document.querySelector({element!r}).getBoundingClientRect().toJSON()")
        assert 0 <= box["left"] and box["right"] <= 1200


def test_two_models_have_a_word_for_each_step_of_the_slider(page, client):
    """A model that reads and writes little, beside one that reads nothing and writes much."""
    shown = {"model": "ntm", "with": "luong", "prefix": "the book </s>", "step": 13}
    page.open(f"http://127.0.0.1:{client.port}/#{urlencode(shown)}")
    page.wait(DRAWN.format(2))
    read, written = (trace_of(client, name) for name in ("ntm", "luong"))
    words = [*read["source_tokens"], *written["tokens"]]
    ticks = page.run("[...document.querySelectorAll('#ticks li')].map((tick) => tick.innerText)")
    assert ticks == [word.replace("</s>", "end") for word in words]
    assert text(page, "#where") == f"14 of {len(words)}"
    assert text(page, "#ticks .now") == written["tokens"][0]
    assert page.run("document.querySelectorAll('#ticks .read').length") == read["boundary"]


def has_focus(page):
    """Number and class of the word or choice that the keyboard is at, or else the name."""
    return page.run(
        "((at) => at.closest('button') && !at.id"
        " ? [[...at.parentNode.querySelectorAll('button')].indexOf(at), at.classList[0]]"
        " : at.id || at.tagName)(document.activeElement)"
    )


def enter(page, selector, number):
    page.run(f"document.querySelectorAll({selector!r})[{number}].focus()")
    for kind, more in (("keyDown", {"text": "\r"}), ("keyUp", {})):
        key = {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13}
        page.call("Input.dispatchKeyEvent", type=kind, **key, **more)
    page.wait("!document.querySelector('.stage.busy')")


def test_the_keyboard_stays_at_its_word_when_the_step_changes(page):
    """A screen reader would begin again at the top of the page."""
    enter(page, ".target .word", 4)
    assert text(page, "#where") == "5 of 14" and has_focus(page) == [4, "word"]
    page.key("ArrowRight")
    assert text(page, "#where") == "6 of 14" and has_focus(page) == [4, "word"]
    page.run("document.querySelectorAll('.choice')[2].focus()")
    page.key("ArrowLeft")
    assert text(page, "#where") == "5 of 14" and has_focus(page) == [2, "choice"]
    enter(page, ".choice", 1)
    page.wait("document.querySelectorAll('.undo').length")
    assert has_focus(page) == [1, "choice"]
    enter(page, ".undo button", 0)
    page.wait("!document.querySelector('.undo')")
    assert has_focus(page) == "stages"


def test_what_follows_a_forced_word_is_played_unless_nothing_does(page):
    """From the end it would begin again at the first step."""
    page.call("Emulation.setEmulatedMedia", features=[])  # with motion
    playing = "document.querySelector('#play').ariaLabel === 'Pause'"

    def say(word):
        page.run("document.querySelectorAll('.target .word')[5].click()")
        field = "document.querySelector('.other input')"
        page.run(f"({field}.value = {word!r}, {field}.form.requestSubmit())")
        page.wait("!document.querySelector('.stage.busy')")
        page.run("new Promise((done) => setTimeout(done, 100))")

    say("no-such-word")
    assert text(page, "#where") == "6 of 14" and not page.run(playing)
    page.errors.clear()
    say("</s>")
    assert text(page, "#where") == "6 of 6" and not page.run(playing)
    page.run("document.querySelector('.undo button').click()")
    page.wait("!document.querySelector('.undo') && !document.querySelector('.stage.busy')")
    say("will")
    page.wait(playing, 10)
    page.size(1200, 900)  # which asks for less motion
    say("the")
    assert text(page, "#where").startswith("6 of") and not page.run(playing)


def test_a_click_on_a_word_or_a_cell_shows_its_step(page, client):
    columns = len(trace_of(client, "luong")["source_tokens"])
    page.click(".target .word", 6)
    assert text(page, "#where") == "7 of 14"
    page.click(CELL, 3 * columns)
    assert text(page, "#where") == "4 of 14"
    page.click("#ticks li", 9)
    assert text(page, "#where") == "10 of 14" and later_words(page) == 4


def test_the_address_brings_back_what_is_shown(page, client):
    """Model, sentence, step, a forced word, and the model beside it."""
    page.run("document.querySelector('#compare').click()")
    page.wait(DRAWN.format(2))
    page.run("document.querySelectorAll('#stage-0 .target .word')[5].click()")
    page.run("document.querySelector('#stage-0 .other input').value = 'will'")
    page.run("document.querySelector('#stage-0 .other').requestSubmit()")
    page.wait("document.querySelector('.undo') && !document.querySelector('.stage.busy')")
    page.run("document.querySelectorAll('#stage-0 .target .word')[8].click()")

    def state():
        rows = "[...document.querySelectorAll('.stage .target .word')].map((w) => w.innerText)"
        titles = "[...document.querySelectorAll('.stage h2')].map((title) => title.innerText)"
        return page.run(rows), page.run(titles), text(page, "#where"), text(page, ".undo")

    before, address = state(), page.run("location.href")
    assert "will" in before[0] and len(before[1]) == 2
    assert before[2].startswith("22 of")  # the ninth word, after 13 that the other model reads
    page.open(address)
    page.wait(DRAWN.format(2))
    assert state() == before
    assert page.run("location.href") == address


def test_another_address_in_the_same_tab_is_followed(page, client):
    """As a bookmark does: the browser does not load the page again where only the hash differs."""
    lines = "nokti Darkel rapidem folia signir ta ."
    trace = client.post("/play/trace", {"model": "rnnsearch", "lines": [lines]})[1]
    page.run(f"location.hash = {urlencode({'model': 'rnnsearch', 'text': lines, 'step': 3})!r}")
    page.wait("document.querySelector('.stage h2').innerText.startsWith('RNNSearch')", 60)
    page.wait(DRAWN.format(1))
    assert page.run("document.querySelector('#text').value") == lines
    assert text(page, "#where") == f"4 of {len(trace['tokens'])}"
    page.run("document.querySelector('.skip').click()")  # its hash names no model
    page.key("End")
    assert text(page, ".stage h2").startswith("RNNSearch")
    assert text(page, "#where") == f"{len(trace['tokens'])} of {len(trace['tokens'])}"


def test_a_step_that_is_no_number_is_the_first(page, client):
    question = urlencode({"model": "luong", "text": "nokti Darkel signir ta .", "step": "last"})
    page.open(f"http://127.0.0.1:{client.port}/#{question}")
    page.wait(DRAWN.format(1))
    assert text(page, "#where").startswith("1 of")


def test_a_refused_sentence_leaves_nothing_of_another_model(page):
    """Heading, figures and steps would be taken for those of the model that is chosen."""
    page.run(f"document.querySelector('#text').value = {'anko ' * 100!r}")
    page.run(
        "(document.querySelector('#model-0').value = 'ntm',"
        "document.querySelector('#model-0').dispatchEvent(new Event('change')))"
    )
    page.wait("!document.querySelector('#message').hidden")
    page.wait("!document.querySelector('.stage.busy')")
    assert "at most 400" in text(page, "#message")
    assert (
        text(page, ".stage")
        == "Neural Turing machine cell ntm · " + re.search("BLEU .*", text(page, ".name"))[0]
    )
    assert page.run("document.querySelector('#transport').hidden")
    [refused] = page.errors
    assert "413" in refused["text"]
    page.errors.clear()


@pytest.mark.parametrize("composing", [True, False])
def test_enter_translates_unless_it_ends_a_composed_word(page, composing):
    """Input methods of Chinese, Japanese and Korean end the choice of a word with this key."""
    before = text(page, ".source")
    page.run("document.querySelector('#text').value = 'nokti Darkel'")
    event = f"{{key: 'Enter', isComposing: {str(composing).lower()}, cancelable: true}}"
    key = f"new KeyboardEvent('keydown', {event})"
    page.run(f"document.querySelector('#text').dispatchEvent({key})")
    page.wait("!document.querySelector('.stage.busy')")
    assert (text(page, ".source") == before) == composing


def test_words_stand_in_the_direction_of_their_language(page, tmp_path):
    from tfmann.play import pages  # here, because it needs the extra `serve`

    words = ["שלום", "ספר", "قرأ", "."]
    model = write_model(tmp_path, words=words)
    app = pages.make_app(library.Library(library.of_runs([str(model)], [])))
    with served(app) as client:
        for line, order in ((".  قرأ ספר .", "rtl"), ("unknown ספר", "rtl"), ("x .", "ltr")):
            page.open(f"http://127.0.0.1:{client.port}/#{urlencode({'text': line})}")
            page.wait(DRAWN.format(1))
            lefts = page.run(
                "[...document.querySelectorAll('.source .word')]"
                ".map((word) => word.getBoundingClientRect().left)"
            )
            assert lefts == sorted(lefts, reverse=order == "rtl") and len(set(lefts)) > 2


def test_no_words_of_a_figure_are_cut_at_a_short_sentence(page, client):
    page.open(f"http://127.0.0.1:{client.port}/#{urlencode({'model': 'ntm', 'text': '.'})}")
    page.wait(DRAWN.format(1))
    for key in ("Home", "End"):
        page.key(key)
        ends = page.run(
            "[...document.querySelectorAll('figure svg text:not([transform])')].map((text) =>"
            "[text.textContent, text.getBoundingClientRect().right"
            " - text.closest('.scroll > svg').getBoundingClientRect().right])"
        )
        assert [title for title, beyond in ends if beyond > 0.5] == []


def test_a_long_document_can_be_scrolled_and_is_not_cut(page):
    document = "\n".join(f"anko Darkel ve merka donir ta {line} ." * 10 for line in range(24))
    field = "document.querySelector('#text')"
    page.run(f"({field}.value = '', {field}.focus())")
    page.call("Input.insertText", text=document)
    assert page.run(f"{field}.value") == document
    assert page.run(f"{field}.scrollHeight > {field}.clientHeight")
    assert page.run(f"getComputedStyle({field}).overflowY") == "auto"
