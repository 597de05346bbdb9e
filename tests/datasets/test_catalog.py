"""Published corpora: downloads from servers that misbehave, the command line.

The servers are threads on 127.0.0.1; no test leaves the machine.
"""

import socket
import threading
import time

import pytest
from helpers.corpus_server import COMPLETE, TEXT, WITHOUT_IT, Server, corpus, names_in, one_file

from tfmann.datasets import catalog, download
from tfmann.datasets.catalog import fetch
from tfmann.errors import UserError


@pytest.fixture
def second_server():
    running = Server()
    yield running
    running.http.shutdown()
    running.http.server_close()


def test_a_good_download_arrives_and_is_not_repeated(server, tmp_path, capsys):
    manifest, folder = corpus(tmp_path, one_file(server.url))
    report = fetch(manifest, folder)
    assert (folder / "train.xx").read_bytes() == TEXT
    assert names_in(folder) == COMPLETE
    assert report.matches["train.xx"] is True and report.matches["train.yy"] is None
    assert "train.xx: downloading from 127.0.0.1" in capsys.readouterr().err
    fetch(manifest, folder)
    assert server.ranges == [None]


def test_a_changed_file_is_downloaded_again_and_stays_beside_the_new_one(server, tmp_path, capsys):
    manifest, folder = corpus(tmp_path, one_file(server.url))
    (folder / "train.xx").write_bytes(TEXT + b"more\n")
    fetch(manifest, folder)
    assert (folder / "train.xx").read_bytes() == TEXT
    assert (folder / "train.xx.old").read_bytes() == TEXT + b"more\n"
    assert f"{folder / 'train.xx'}.old now" in capsys.readouterr().err
    (folder / "train.xx").write_bytes(TEXT + b"even more\n")
    fetch(manifest, folder)
    assert (folder / "train.xx.old").read_bytes() == TEXT + b"more\n"
    assert (folder / "train.xx.old2").read_bytes() == TEXT + b"even more\n"
    assert f"{folder / 'train.xx'}.old2 now" in capsys.readouterr().err


def test_a_file_that_cannot_be_replaced_stays(server, tmp_path):
    manifest, folder = corpus(tmp_path, one_file(server.url, lines=4999))
    (folder / "train.xx").write_bytes(b"mine\n")
    with pytest.raises(UserError, match="expected 4,999"):
        fetch(manifest, folder)
    assert (folder / "train.xx").read_bytes() == b"mine\n"


def test_a_known_variant_is_not_downloaded(server, tmp_path):
    accepted = [{"lines": 4999, "note": "without the first line"}]
    entry = one_file(server.url, lines=5000, accept_lines=accepted)
    manifest, folder = corpus(tmp_path, entry, {**entry, "path": "train.yy"})
    variant = TEXT.split(b"\n", 1)[1]
    for name in ("train.xx", "train.yy"):
        (folder / name).write_bytes(variant)
    fetch(manifest, folder)
    assert server.ranges == []
    assert (folder / "train.xx").read_bytes() == variant


@pytest.mark.parametrize(
    "checks, words",
    [
        ({"sha256": "0" * 64}, "SHA-256 is [0-9a-f]{64}, expected 0000"),
        ({"bytes": 10}, "bytes, expected 10"),
        ({"bytes": len(TEXT) + 1}, "bytes, expected"),
        ({"lines": 4999}, "5,000 lines, expected 4,999"),
        ({"bytes": len(TEXT), "lines": 1}, "5,000 lines, expected 1"),
    ],
)
def test_another_file_than_expected_is_removed(server, tmp_path, checks, words):
    manifest, folder = corpus(tmp_path, one_file(server.url, **checks))
    with pytest.raises(UserError, match=words) as error:
        fetch(manifest, folder)
    assert server.url in str(error.value) and "CORPUS_DIR" in str(error.value)
    assert names_in(folder) == WITHOUT_IT


def test_a_bad_download_leaves_the_file_that_was_there(server, tmp_path):
    manifest, folder = corpus(tmp_path, one_file(server.url, sha256="0" * 64))
    (folder / "train.xx").write_bytes(b"mine\n")
    with pytest.raises(UserError):
        fetch(manifest, folder)
    assert (folder / "train.xx").read_bytes() == b"mine\n"
    assert names_in(folder) == COMPLETE


@pytest.mark.parametrize("checks", [{}, {"lines": 5000}])
def test_a_truncated_body_is_refused_and_removed(server, tmp_path, checks):
    server.honours_range = False
    server.stops_after = 1000
    manifest, folder = corpus(tmp_path, one_file(server.url, **checks))
    with pytest.raises(UserError, match=f"ended after 1,000 of {len(TEXT):,} bytes"):
        fetch(manifest, folder)
    assert names_in(folder) == WITHOUT_IT
    assert len(server.ranges) == 3


def test_a_truncated_body_is_completed_by_ranges(server, tmp_path):
    server.stops_after = len(TEXT) // 2 + 1
    manifest, folder = corpus(tmp_path, one_file(server.url))
    fetch(manifest, folder)
    assert (folder / "train.xx").read_bytes() == TEXT
    assert server.ranges == [None, f"bytes={server.stops_after}-"]


def test_an_answer_without_a_length_that_breaks_off_is_not_taken(server, tmp_path):
    """Within the last line, whose number is all that the manifest knows of the file."""
    server.is_chunked, server.stops_after, server.honours_range = True, len(TEXT) - 3, False
    manifest, folder = corpus(tmp_path, one_file(server.url, lines=5000))
    with pytest.raises(UserError, match=r"it ended after [\d,]+ bytes\n.*bytes are kept"):
        fetch(manifest, folder)
    assert not (folder / "train.xx").exists()
    server.is_chunked, server.stops_after, server.honours_range = False, None, True
    fetch(manifest, folder)
    assert (folder / "train.xx").read_bytes() == TEXT


def test_ranges_that_end_early_are_kept_for_the_next_run(server, tmp_path):
    """As behind a proxy that ends every answer after some time."""
    server.stops_after = len(TEXT) // 5
    manifest, folder = corpus(tmp_path, one_file(server.url))
    with pytest.raises(UserError, match=f"{3 * server.stops_after:,} bytes are kept"):
        fetch(manifest, folder)
    fetch(manifest, folder)
    assert server.ranges[3] == f"bytes={3 * server.stops_after}-"
    assert (folder / "train.xx").read_bytes() == TEXT
    assert names_in(folder) == COMPLETE


def test_a_server_that_promises_more_than_it_has_leaves_nothing(server, tmp_path):
    server.stops_after = 0
    manifest, folder = corpus(tmp_path, one_file(server.url))
    with pytest.raises(UserError, match="ended after 0 of"):
        fetch(manifest, folder)
    assert names_in(folder) == WITHOUT_IT


def test_a_broken_connection_keeps_what_came_for_the_next_run(server, tmp_path):
    server.stops_after, server.breaks = 70_000, True
    manifest, folder = corpus(tmp_path, one_file(server.url))
    server.honours_range = False
    with pytest.raises(UserError, match="connection broke(.|\n)*65,536 bytes are kept"):
        fetch(manifest, folder)
    assert names_in(folder) == sorted([*WITHOUT_IT, "train.xx.part"])
    server.stops_after, server.breaks, server.honours_range = None, False, True
    fetch(manifest, folder)
    assert server.ranges[-1] == "bytes=65536-"
    assert (folder / "train.xx").read_bytes() == TEXT
    assert names_in(folder) == COMPLETE


@pytest.mark.parametrize("status", [403, 404, 500, 204])
def test_an_error_page_is_not_a_corpus(server, tmp_path, status):
    server.status = status
    manifest, folder = corpus(tmp_path, one_file(server.url, lines=0))
    with pytest.raises(UserError, match=f"HTTP {status}"):
        fetch(manifest, folder)
    assert names_in(folder) == WITHOUT_IT


def test_an_error_page_that_says_200_is_not_a_corpus_either(server, tmp_path):
    server.content = b"<html>sorry</html>"
    manifest, folder = corpus(tmp_path, one_file(server.url, lines=5000))
    with pytest.raises(UserError, match="1 lines, expected 5,000"):
        fetch(manifest, folder)
    assert names_in(folder) == WITHOUT_IT


def test_a_part_is_resumed(server, tmp_path):
    manifest, folder = corpus(tmp_path, one_file(server.url))
    (folder / "train.xx.part").write_bytes(TEXT[:4321])
    fetch(manifest, folder)
    assert server.ranges == ["bytes=4321-"]
    assert (folder / "train.xx").read_bytes() == TEXT
    assert names_in(folder) == COMPLETE


def test_a_part_is_restarted_where_the_server_has_no_ranges(server, tmp_path):
    server.honours_range = False
    manifest, folder = corpus(tmp_path, one_file(server.url))
    (folder / "train.xx.part").write_bytes(TEXT[:4321])
    fetch(manifest, folder)
    assert (folder / "train.xx").read_bytes() == TEXT


def test_another_range_than_requested_is_not_appended(server, tmp_path):
    server.skips = 5  # inside a line, so that the number of lines would still be right
    manifest, folder = corpus(tmp_path, one_file(server.url, lines=5000))
    (folder / "train.xx.part").write_bytes(TEXT[:4321])
    fetch(manifest, folder)
    assert server.ranges == ["bytes=4321-", None]
    assert (folder / "train.xx").read_bytes() == TEXT


@pytest.mark.parametrize("part", [TEXT, b"x" * 100, b"x" * len(TEXT), b"x" * (len(TEXT) + 10), b""])
@pytest.mark.parametrize("checks", [{}, {"bytes": len(TEXT), "lines": 5000}])
def test_a_part_that_is_complete_or_of_another_version(server, tmp_path, part, checks):
    manifest, folder = corpus(tmp_path, one_file(server.url, **checks))
    (folder / "train.xx.part").write_bytes(part)
    fetch(manifest, folder)
    assert server.ranges[1:] == ([] if part in (TEXT, b"") else [None])
    assert (folder / "train.xx").read_bytes() == TEXT
    assert names_in(folder) == COMPLETE


@pytest.mark.parametrize("fault", ["refused", "404", "other", "short"])
def test_the_next_mirror_is_tried(server, second_server, tmp_path, fault):
    first = second_server.url
    if fault == "refused":
        first = unused_address()
    elif fault == "404":
        second_server.status = 404
    elif fault == "other":
        second_server.content = TEXT[::-1]
    else:
        second_server.stops_after, second_server.honours_range = 99, False
    manifest, folder = corpus(tmp_path, one_file(first, server.url))
    fetch(manifest, folder)
    assert (folder / "train.xx").read_bytes() == TEXT
    assert names_in(folder) == COMPLETE


def unused_address():
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{door.getsockname()[1]}/file"


def test_without_any_server_the_words_are_plain(tmp_path, monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    manifest, folder = corpus(tmp_path, one_file(unused_address(), unused_address()))
    with pytest.raises(UserError, match="seems to be offline") as error:
        fetch(manifest, folder)
    message = str(error.value)
    assert "CORPUS_DIR=path" in message
    assert all(name in message for name in COMPLETE)
    assert names_in(folder) == WITHOUT_IT


def test_a_server_that_speaks_no_http_is_not_called_offline(tmp_path, monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    with socket.create_server(("127.0.0.1", 0)) as door:

        def answer():
            connection, _ = door.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(b"220 mail\r\n")

        threading.Thread(target=answer, daemon=True).start()
        url = f"http://127.0.0.1:{door.getsockname()[1]}/"
        manifest, folder = corpus(tmp_path, one_file(url))
        with pytest.raises(UserError, match="no HTTP answer"):
            fetch(manifest, folder)


def test_a_silent_server_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(download, "_TIMEOUT", 0.1)
    start = time.monotonic()
    with socket.create_server(("127.0.0.1", 0)) as door:
        manifest, folder = corpus(tmp_path, one_file(f"http://127.0.0.1:{door.getsockname()[1]}/"))
        with pytest.raises(UserError, match="offline.*timed out"):
            fetch(manifest, folder)
    assert time.monotonic() - start < 25  # the usual timeout is 30


def test_a_folder_that_cannot_be_made_is_named(server, tmp_path):
    manifest, _ = corpus(tmp_path, one_file(server.url))
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="file/x"):
        fetch(manifest, tmp_path / "file" / "x")


def test_the_command_line_reports_or_says_what_is_wrong(server, tmp_path, capsys):
    _, folder = corpus(tmp_path, one_file(server.url))
    command = ["fetch", str(tmp_path / "manifest.json"), "--directory", str(folder)]
    assert catalog.main([*command, "--corpus_dir", str(tmp_path)]) == 1
    assert "lacks" in capsys.readouterr().err
    assert catalog.main([*command, "--corpus_dir", ""]) == 0
    assert "train" in capsys.readouterr().out
    assert catalog.main([*command, "--corpus_dir", str(folder)]) == 0
    assert "5,000 pairs" in capsys.readouterr().out
    assert server.ranges == [None]
    assert catalog.main(["fetch", str(tmp_path / "none.json"), "--directory", "d"]) == 2
    with pytest.raises(SystemExit) as stopped:
        catalog.main(["fetsch"])
    assert stopped.value.code == 2
