"""Dialogues in JSON: sides by language, utterances in order, errors that name the file."""

import hashlib
import json

import pytest
from helpers.corpus_server import Server, manifest_of, record

from tfmann.datasets import dialogues
from tfmann.datasets.catalog import fetch
from tfmann.errors import UserError

DIALOGUES = {
    "dlg-b": [
        {
            "utteranceID": 0,
            "speaker": "customer",
            "source": "Guten  Tag!",
            "target": "Hello\u00a0!",
        },
        {"utteranceID": 1, "speaker": "agent", "source": "How may\nI help?", "target": "Bitte?"},
        {"utteranceID": 2, "speaker": "agent", "source": "...", "target": " "},
    ],
    "dlg-a": [{"utteranceID": 0, "speaker": "agent", "source": "Bye.", "target": "Tschüss."}],
}
EXPECTED = {
    "de": "Guten Tag!\nBitte?\nTschüss.\n",
    "en": "Hello !\nHow may I help?\nBye.\n",
    "docs": "0\n0\n1\n",
}


@pytest.mark.parametrize("member", dialogues.MEMBERS)
def test_a_side_has_the_texts_of_its_language(tmp_path, member):
    (tmp_path / "x.json").write_text(json.dumps(DIALOGUES), encoding="utf-8")
    dialogues.write_member(tmp_path / "x.json", member, tmp_path / "out")
    assert (tmp_path / "out").read_text(encoding="utf-8") == EXPECTED[member]


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[]",
        '{"a": 3}',
        '{"a": [{"speaker": "agent", "source": "x"}]}',
        '{"a": [{"speaker": "agent", "source": "x", "target": 3}]}',
        '{"a": [{"speaker": "nobody", "source": "x", "target": "y"}]}',
    ],
)
def test_another_format_is_refused(tmp_path, content):
    (tmp_path / "x.json").write_text(content)
    with pytest.raises(UserError, match="x.json: expected dialogues, lists of utterances with"):
        dialogues.write_member(tmp_path / "x.json", "de", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_what_is_not_there_is_named(tmp_path):
    with pytest.raises(UserError, match="no.json"):
        dialogues.write_member(tmp_path / "no.json", "de", tmp_path / "out")
    with pytest.raises(UserError, match="no 'fr' in it; expected de, en, docs"):
        dialogues.write_member(tmp_path / "no.json", "fr", tmp_path / "out")


def test_a_corpus_of_dialogues_is_downloaded_once(tmp_path, monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    server = Server()
    server.content = json.dumps(DIALOGUES).encode()
    content = record()
    content.update(source="de", target="en")
    content["splits"] = {split: {"prefix": split} for split in ("train", "dev", "test")}
    content["files"] = [
        {"path": f"{split}.{member}", "archive": "archives/all.json", "member": member, "lines": 3}
        for split in content["splits"]
        for member in dialogues.MEMBERS
    ]
    checksum = hashlib.sha256(server.content).hexdigest()
    content["archives"] = [{"path": "archives/all.json", "urls": [server.url], "sha256": checksum}]
    content["vocabularies"] = None
    try:
        report = fetch(manifest_of(tmp_path, content), tmp_path / "corpus")
    finally:
        server.http.shutdown()
        server.http.server_close()
    assert server.ranges == [None]
    assert {split.documents for split in report.splits.values()} == {2}
    assert (tmp_path / "corpus" / "test.de").read_text(encoding="utf-8") == EXPECTED["de"]
