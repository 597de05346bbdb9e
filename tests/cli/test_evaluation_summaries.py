"""The texts of an evaluation: one sentence in the log, and those that are followed."""

import html
import re
from types import SimpleNamespace

from tensorboard.plugin_util import markdown_to_safe_html

from tfmann.cli import evaluation_summaries
from tfmann.data.text_files import write_lines


def test_the_first_sentences_are_shown_at_every_step(tmp_path):
    write_lines(tmp_path / "dev.tgt", [f"r{i}" for i in range(9)])
    lines, logged, texts = [f"s{i}" for i in range(9)], [], {}
    board = SimpleNamespace(text=lambda step, name, text: texts.update({(step, name): text}))
    for step in (10, 20):
        best = [SimpleNamespace(text=f"t{i} at {step}") for i in range(9)]
        arguments = (board, logged.append, step, lines, str(tmp_path / "dev.tgt"), best)
        evaluation_summaries.show_sample(*arguments, watched=2)
    names = {name for _, name in texts}
    assert names == {"sample", "translations/0", "translations/1"} and len(texts) == 6
    assert texts[20, "translations/1"] == "| | |\n|-|-|\n|src|`s1`|\n|ref|`r1`|\n|nmt|`t1 at 20`|"
    for step, (source, reference, translation) in zip((10, 20), (logged[:3], logged[3:])):
        number = source[-1]
        assert (source, reference) == (f"  src: s{number}", f"  ref: r{number}")
        assert translation == f"  nmt: t{number} at {step}"
        assert f"|src|`s{number}`|" in texts[step, "sample"]


def test_tensorboard_shows_any_text_as_it_is(tmp_path):
    texts = ["a | b *c* _d_", "<unk> x < y & z", "a `b` ``c", "c \\ d", "<b>x</b> [y](z)", ""]
    shown = {}
    for text in texts:
        write_lines(tmp_path / "dev.tgt", [text])
        board = SimpleNamespace(text=lambda step, name, markdown: shown.update({name: markdown}))
        best = [SimpleNamespace(text=text)]
        evaluation_summaries.show_sample(
            board, print, 1, [text], str(tmp_path / "dev.tgt"), best, watched=1
        )
        page = markdown_to_safe_html(shown["translations/0"])
        cells = [html.unescape(re.sub("<.*?>", "", cell)) for cell in page.split("</td>")[:-1]]
        assert [cell.strip() for cell in cells] == ["src", text, "ref", text, "nmt", text]
