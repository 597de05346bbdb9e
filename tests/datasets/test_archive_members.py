"""One file out of an archive, and corpora that are published in archives."""

import hashlib
import io
import tarfile
import zipfile

import pytest
from helpers.corpus_server import manifest_of, names_in, record

from tfmann.datasets.archives import extract_member
from tfmann.datasets.catalog import fetch, use_local
from tfmann.errors import UsageError, UserError

SGML = "<doc>\n" + "".join(f'<seg id="{i}">zeile {i} &amp; so</seg>\n' for i in range(7)) + "</doc>"
PLAIN = "".join(f"zeile {i} & so\n" for i in range(7))


def tar_of(path, *members, mode="w:gz"):
    """Writes a tar of (TarInfo or name, text) pairs."""
    with tarfile.open(path, mode) as tar:
        for member, text in members:
            info = member if isinstance(member, tarfile.TarInfo) else tarfile.TarInfo(member)
            if info.isreg():
                info.size = len(text.encode())
            tar.addfile(info, io.BytesIO(text.encode()))
    return path


def link(name, target):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = tarfile.SYMTYPE, target
    return info


# One member


@pytest.mark.parametrize("name", ["a/b.txt", "./a/b.txt"])
def test_a_member_comes_out_whatever_else_is_in_there(tmp_path, name):
    other_members = [("../evil", "evil"), (link("a/b", "/etc/passwd"), ""), ("a/b.txt.old", "old")]
    archive = tar_of(tmp_path / "x.tgz", *other_members, (name, "bee"), ("/evil", "evil"))
    extract_member(archive, "a/b.txt", tmp_path / "out")
    assert (tmp_path / "out").read_text() == "bee"
    assert names_in(tmp_path) == ["out", "x.tgz"]


def test_a_member_of_a_zip_comes_out(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as bundle:
        bundle.writestr("../evil", "evil")
        bundle.writestr("a/b.txt", "bee")
    extract_member(tmp_path / "x.zip", "a/b.txt", tmp_path / "out")
    assert (tmp_path / "out").read_text() == "bee"


@pytest.mark.parametrize("member", ["a", "a/b", "b.txt", "a/link", "../a/b.txt"])
def test_what_is_no_plain_member_is_refused(tmp_path, member):
    archive = tar_of(tmp_path / "x.tgz", ("a/b.txt", "bee"), (link("a/link", "b.txt"), ""))
    with pytest.raises(UserError, match="x.tgz: (there is no|the member)"):
        extract_member(archive, member, tmp_path / "out")
    assert names_in(tmp_path) == ["x.tgz"]


def test_a_member_that_is_too_big_is_refused(tmp_path):
    archive = tar_of(tmp_path / "x.tgz", ("a", "x" * 100_000))
    with pytest.raises(UserError, match="more than 99,999 bytes"):
        extract_member(archive, "a", tmp_path / "out", max_bytes=99_999)
    assert names_in(tmp_path) == ["x.tgz"]
    extract_member(archive, "a", tmp_path / "out", max_bytes=100_000)


def test_a_broken_archive_leaves_what_was_there(tmp_path):
    archive = tar_of(tmp_path / "x.tgz", ("a", "".join(map(str, range(100_000)))))
    (tmp_path / "out").write_text("mine")
    undamaged = archive.read_bytes()
    for broken in (b"", undamaged[: len(undamaged) // 2], b"?" + undamaged[1:]):
        archive.write_bytes(broken)
        with pytest.raises(UserError, match="x.tgz: .*archive"):
            extract_member(archive, "a", tmp_path / "out")
        assert (tmp_path / "out").read_text() == "mine"
        assert names_in(tmp_path) == ["out", "x.tgz"]


# Corpora in archives


def in_archive(side, member, **checks):
    entry = {"path": f"train.{side}", "archive": "archives/all.tgz", "member": member}
    return {**entry, **(checks or {"lines": 7})}


@pytest.fixture
def server_and_maker(server, tmp_path):
    """A server with an archive, and a maker of a manifest and a folder that lacks train alone."""
    archive = tar_of(tmp_path / "x.tgz", ("set/src.xx.sgm", SGML), ("set/ref.yy", PLAIN))
    server.content = archive.read_bytes()
    archive.unlink()

    def make(xx=None, yy=None, **archive_changes):
        content = record(
            xx or in_archive("xx", "set/src.xx.sgm"), yy or in_archive("yy", "set/ref.yy")
        )
        checks = {
            "sha256": hashlib.sha256(server.content).hexdigest(),
            "bytes": len(server.content),
        }
        entry = {"path": "archives/all.tgz", "urls": [server.url], **checks, **archive_changes}
        content["archives"] = [entry]
        folder = tmp_path / "corpus"
        folder.mkdir(exist_ok=True)
        manifest = manifest_of(tmp_path, content)
        for file in manifest.files:
            if not file.members:
                (folder / file.path).write_text("line\n" * 5000)
        return manifest, folder

    return server, make


def test_an_archive_is_downloaded_once_and_sgml_becomes_text(server_and_maker):
    server, make = server_and_maker
    manifest, folder = make()
    report = fetch(manifest, folder)
    assert (folder / "train.xx").read_text() == (folder / "train.yy").read_text() == PLAIN
    assert report.splits["train"].pairs == 7 and report.matches["train.xx"] is None
    assert server.ranges == [None]
    (folder / "train.yy").unlink()
    fetch(manifest, folder)
    assert server.ranges == [None] and (folder / "train.yy").exists()
    assert not [name for name in names_in(folder) if name.endswith((".part", ".tmp"))]
    (folder / "archives" / "all.tgz").unlink()
    fetch(manifest, folder)
    assert server.ranges == [None] and not (folder / "archives" / "all.tgz").exists()


def test_a_file_is_joined_of_parts_in_their_order(server_and_maker):
    server, make = server_and_maker
    sgml, plain = "set/src.xx.sgm", "set/ref.yy"
    parts = [{"archive": "archives/all.tgz", "member": name} for name in (plain, sgml, plain)]
    manifest, folder = make(*({"path": f"train.{side}", "parts": parts} for side in ("xx", "yy")))
    assert fetch(manifest, folder).splits["train"].pairs == 21
    assert (folder / "train.xx").read_text() == PLAIN * 3 and server.ranges == [None]
    temporary = [name for name in names_in(folder) if name.endswith((".part", ".whole"))]
    assert temporary == []


def test_a_part_without_a_last_line_end_gets_one(server_and_maker, tmp_path):
    server, make = server_and_maker
    archive = tar_of(tmp_path / "y.tgz", ("a", "one\ntwo"), ("b", "three\n"))
    server.content = archive.read_bytes()
    parts = [{"archive": "archives/all.tgz", "member": name} for name in "ab"]
    manifest, folder = make(*({"path": f"train.{side}", "parts": parts} for side in ("xx", "yy")))
    assert fetch(manifest, folder).splits["train"].pairs == 3
    assert (folder / "train.yy").read_text() == "one\ntwo\nthree\n"


def test_an_interrupted_download_of_an_archive_resumes(server_and_maker):
    server, make = server_and_maker
    manifest, folder = make()
    (folder / "archives").mkdir()
    (folder / "archives" / "all.tgz.part").write_bytes(server.content[:50])
    fetch(manifest, folder)
    assert server.ranges == ["bytes=50-"]


def test_a_local_copy_needs_no_archive(server_and_maker):
    server, make = server_and_maker
    manifest, folder = make()
    for side in ("xx", "yy"):
        (folder / f"train.{side}").write_text(PLAIN)
    assert use_local(manifest, folder).splits["train"].pairs == 7
    assert server.ranges == []


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"sha256": "0" * 64}, "SHA-256 is"),
        ({"xx": in_archive("xx", "set/src.sgm")}, "there is no 'set/src.sgm' in it"),
        ({"xx": in_archive("xx", "set/src.xx.sgm", lines=8)}, "it has 7 lines, expected 8"),
        ({"yy": in_archive("yy", "set/ref.yy", sha256="0" * 64)}, "its SHA-256 is"),
    ],
)
def test_what_is_not_as_published_is_refused(server_and_maker, changes, words):
    server, make = server_and_maker
    manifest, folder = make(**changes)
    with pytest.raises(UserError, match=words) as error:
        fetch(manifest, folder)
    assert "CORPUS_DIR" in str(error.value)
    assert not [name for name in names_in(folder) if name.endswith((".part", ".tmp"))]
    wrong = "train.yy" if "yy" in changes else "train.xx"
    assert not (folder / wrong).exists()


ENTRY = in_archive("xx", "set/src.xx.sgm")
ARCHIVE = {"path": "archives/all.tgz", "urls": ["https://h/f"], "sha256": "0" * 64}


@pytest.mark.parametrize(
    "entry, archive, words",
    [
        (ENTRY, {**ARCHIVE, "path": "all.tgz"}, "'archives/all.tgz' is not among archives"),
        ({**ENTRY, "urls": ["https://h/f"]}, ARCHIVE, "only one of them"),
        ({**ENTRY, "parts": [{"archive": "x", "member": "y"}]}, ARCHIVE, "only one of them"),
        ({"path": "train.xx", "parts": [{"archive": "x", "member": "y"}]}, ARCHIVE, "'x' is not"),
        ({"path": "train.xx", "parts": [{"archive": "x"}]}, ARCHIVE, r"parts\[0\].member' is miss"),
        ({**ENTRY, "member": None}, ARCHIVE, "an archive and a member"),
        ({**ENTRY, "archive": None}, ARCHIVE, "an archive and a member"),
        (ENTRY, {**ARCHIVE, "urls": []}, r"archives\[0\].urls: expected one or more"),
        (ENTRY, {**ARCHIVE, "sha256": None}, r"archives\[0\]: sha256, bytes or lines"),
        (ENTRY, {**ARCHIVE, "path": "../all.tgz"}, "plain path"),
        (ENTRY, {**ARCHIVE, "path": "train.yy"}, "train.yy is listed twice"),
        (ENTRY, {**ARCHIVE, "lines": 7}, r"unknown key 'archives\[0\].lines'"),
        (ENTRY, {**ARCHIVE, "member": "x"}, r"unknown key 'archives\[0\].member'"),
    ],
)
def test_a_wrong_manifest_is_refused_by_key(tmp_path, entry, archive, words):
    content = record(entry)
    content["archives"] = [archive]
    with pytest.raises(UsageError, match=words):
        manifest_of(tmp_path, content)
