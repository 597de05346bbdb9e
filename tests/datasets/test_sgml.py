"""SGML of test sets: one segment a line, as the plain files have it."""

import pytest

from tfmann.datasets.sgml import segments, to_plain_text
from tfmann.errors import UserError

SET = """<?xml version="1.0" encoding="utf-8"?>
<srcset setid="invented" srclang="any">
<doc sysid="ref" docid="paper.1" genre="news" origlang="ro">
<hl>
<seg id="1">A first &amp; short line, <b>set</b> in bold</seg>
</hl>
<p>
<seg id="2"> It&apos;s &quot;two&quot;: 1 &lt; 2 &#39;so&#39; </seg><seg id=3>three
 goes
	on</seg>
<SEG id="4"></SEG>
</p>
</doc>
<doc docid="paper.2"><p><seg id="1">ș – &amp;amp; “x”\u00a0y</seg></p></doc>
</srcset>
"""
LINES = [
    "A first & short line, set in bold",
    "It's \"two\": 1 < 2 'so'",
    "three goes on",
    "",
    "ș – &amp; “x”\u00a0y",
]


def test_segments_are_lines_without_tags_and_entities():
    assert list(segments(SET)) == LINES


def test_only_segments_are_text():
    assert list(segments("<doc>title<seg>a</seg>between<seg>b</seg></doc>")) == ["a", "b"]


def test_a_file_may_become_its_own_plain_text(tmp_path):
    path = tmp_path / "set"
    for content in (SET.encode("utf-8"), b"\xef\xbb\xbf" + SET.replace("\n", "\r\n").encode()):
        path.write_bytes(content)
        to_plain_text(path, path)
        assert path.read_text(encoding="utf-8") == "".join(f"{line}\n" for line in LINES)


@pytest.mark.parametrize(
    "content, words",
    [
        (b"plain text\n", "no <seg> in it"),
        (b"", "no <seg> in it"),
        (b"<seg>ab\xff</seg>", "not UTF-8 at byte 7"),
    ],
)
def test_what_is_no_sgml_is_refused(tmp_path, content, words):
    (tmp_path / "set").write_bytes(content)
    with pytest.raises(UserError, match=words):
        to_plain_text(tmp_path / "set", tmp_path / "lines")
    assert not (tmp_path / "lines").exists()
