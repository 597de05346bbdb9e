"""Archives: what is extracted, and what never is."""

import bz2
import gzip
import io
import lzma
import os
import random
import stat
import tarfile
import zipfile

import pytest

from tfmann.datasets import archives
from tfmann.datasets.archives import extract
from tfmann.errors import UserError


def names_in(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def tar_of(path, *members, mode="w"):
    """Writes a tar of (TarInfo or name, content) pairs."""
    with tarfile.open(path, mode) as tar:
        for member, content in members:
            if not isinstance(member, tarfile.TarInfo):
                member = tarfile.TarInfo(member)
            if member.isreg():
                member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return path


def special_member(name, kind, target=""):
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    return member, b""


def zip_of(path, *members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as bundle:
        for name, content in members:
            bundle.writestr(name, content)
    return path


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_tars_are_extracted(tmp_path, mode):
    folder = special_member("a", tarfile.DIRTYPE)
    archive = tar_of(tmp_path / "x.tar", folder, ("./a/b.txt", b"bee"), ("c.txt", b""), mode=mode)
    out = tmp_path / "out"
    assert extract(archive, out) == [out / "a/b.txt", out / "c.txt"]
    assert (out / "a/b.txt").read_bytes() == b"bee"
    assert names_in(out) == ["a", "a/b.txt", "c.txt"]


def test_a_tar_whose_last_member_is_a_zip_is_a_tar(tmp_path):
    inner = zip_of(tmp_path / "x.zip", ("inner.txt", b"bee")).read_bytes()
    archive = tar_of(tmp_path / "x.tar", ("a.txt", b"bee"), ("x.zip", inner))
    extract(archive, tmp_path / "out")
    assert names_in(tmp_path / "out") == ["a.txt", "x.zip"]


def test_zips_and_lone_gz_files_are_extracted(tmp_path):
    archive = zip_of(tmp_path / "x.zip", ("a/", b""), ("a/b.txt", b"bee"))
    assert extract(archive, tmp_path / "z") == [tmp_path / "z/a/b.txt"]
    (tmp_path / "plain.txt.gz").write_bytes(gzip.compress(b"bee"))
    assert extract(tmp_path / "plain.txt.gz", tmp_path / "g") == [tmp_path / "g/plain.txt"]
    assert (tmp_path / "g/plain.txt").read_bytes() == b"bee"


def test_extracting_replaces_and_sets_plain_permissions(tmp_path):
    member = tarfile.TarInfo("a")
    member.mode = 0o6777
    archive = tar_of(tmp_path / "x.tar", (member, b"new"))
    (tmp_path / "out").mkdir()
    (tmp_path / "out/a").write_bytes(b"old")
    (path,) = extract(archive, tmp_path / "out")
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) & 0o7133 == 0


OUTSIDE = ["../evil", "a/../../evil", "/evil", "..", "a\\..\\evil", "C:evil", "\\evil"]
LINKS = [
    special_member("l", tarfile.SYMTYPE, "../evil"),
    special_member("l", tarfile.LNKTYPE, "good"),
    special_member("l", tarfile.FIFOTYPE),
    special_member("l", tarfile.CHRTYPE),
    special_member("l", tarfile.BLKTYPE),
]


def assert_refused(archive, tmp_path, words, **limits):
    out = tmp_path / "deep" / "out"
    with pytest.raises(UserError, match=words):
        extract(archive, out, **limits)
    assert names_in(tmp_path) == sorted([archive.name, "deep", "deep/out"])
    assert not os.path.exists("/evil")


@pytest.mark.parametrize("name", OUTSIDE)
def test_members_outside_the_folder_are_refused(tmp_path, name):
    archive = tar_of(tmp_path / "x.tar", ("good", b"good"), (name, b"evil"))
    assert_refused(archive, tmp_path, "outside the folder; nothing was extracted")
    archive.unlink()
    archive = zip_of(tmp_path / "x.zip", ("good", b"good"), (name, b"evil"))
    assert_refused(archive, tmp_path, "outside the folder")


@pytest.mark.parametrize("member", LINKS, ids=lambda member: str(member[0].type))
def test_links_and_devices_in_tars_are_refused(tmp_path, member):
    archive = tar_of(tmp_path / "x.tar", ("good", b"good"), member)
    assert_refused(archive, tmp_path, "neither a file nor a folder")


def test_links_in_zips_are_refused(tmp_path):
    member = zipfile.ZipInfo("link")
    member.external_attr = (stat.S_IFLNK | 0o777) << 16
    archive = zip_of(tmp_path / "x.zip", ("good", b"good"), (member, "/etc/passwd"))
    assert_refused(archive, tmp_path, "neither a file nor a folder")


def test_a_link_that_was_there_leads_nobody_out(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out/sub").symlink_to(tmp_path / "elsewhere")
    archive = tar_of(tmp_path / "x.tar", ("good", b"x"), ("sub/evil", b"x"))
    with pytest.raises(UserError, match="link that leads out"):
        extract(archive, tmp_path / "out")
    assert names_in(tmp_path / "elsewhere") == []
    assert names_in(tmp_path / "out") == ["sub"]


@pytest.mark.parametrize(
    ("name", "words"),
    [("b/c", r"out/b is a folder, and 'b' a file"), ("d", r"out/d is a file, and 'd/e/f' lies in")],
)
def test_what_cannot_take_its_place_leaves_all_as_it_was(tmp_path, name, words):
    archive = tar_of(tmp_path / "x.tar", ("a", b"new"), ("b", b"new"), ("d/e/f", b"new"))
    for existing in ("a", name):
        path = tmp_path / "out" / existing
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"old")
    before = names_in(tmp_path)
    with pytest.raises(UserError, match=f"{words}.*; nothing was extracted"):
        extract(archive, tmp_path / "out")
    assert (tmp_path / "out/a").read_bytes() == b"old" and names_in(tmp_path) == before


@pytest.mark.parametrize("kind", ["tar", "zip", "gz"])
def test_bombs_are_refused(tmp_path, kind):
    zeros = bytes(1 << 20)
    if kind == "tar":
        archive = tar_of(tmp_path / "x", ("a", zeros), ("b", zeros), mode="w:gz")
    elif kind == "zip":
        archive = zip_of(tmp_path / "x", ("a", zeros), ("b", zeros))
    else:
        archive = tmp_path / "x.gz"
        archive.write_bytes(gzip.compress(b"x" + zeros + zeros))
    assert archive.stat().st_size < 10_000
    assert_refused(archive, tmp_path, "holds more than", max_bytes=3 << 19)
    extract(archive, tmp_path / "fits", max_bytes=3 << 20)


def test_a_zip_that_lies_about_its_size_is_stopped(tmp_path):
    archive = zip_of(tmp_path / "x.zip", ("a", bytes(1 << 20)))
    size = (1 << 20).to_bytes(4, "little")
    archive.write_bytes(archive.read_bytes().replace(size, (9).to_bytes(4, "little")))
    assert_refused(archive, tmp_path, "sound archive|holds more", max_bytes=1 << 10)


def test_the_number_of_members_is_limited(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "MAX_MEMBERS", 2)
    archive = tar_of(tmp_path / "x.tar", ("a", b""), ("b", b""), ("c", b""))
    assert_refused(archive, tmp_path, "more than 2 files")


def test_members_that_stand_twice_or_clash_are_refused(tmp_path):
    archive = tar_of(tmp_path / "x.tar", ("a", b"1"), ("./a", b"2"))
    assert_refused(archive, tmp_path, "is listed twice")
    archive = tar_of(tmp_path / "x.tar", ("a", b"1"), ("a/b", b"2"))
    assert_refused(archive, tmp_path, "cannot extract")


def test_what_is_no_archive_is_refused(tmp_path):
    for content in (b"", b"plain text\n", b"PK\x03\x04", b"\x1f\x8b\x00", bz2.compress(b"x")):
        (tmp_path / "x").write_bytes(content)
        with pytest.raises(UserError):
            extract(tmp_path / "x", tmp_path / "out")
    with pytest.raises(UserError, match="no such file"):
        extract(tmp_path / "absent", tmp_path / "out")
    assert names_in(tmp_path / "out") == []


def test_damaged_archives_give_files_or_a_user_error(tmp_path):
    draw = random.Random(5)
    text = bytes(draw.randrange(97, 123) for _ in range(3000))
    undamaged = [
        tar_of(tmp_path / "1", ("a", text), ("b", text), mode="w:gz").read_bytes(),
        tar_of(tmp_path / "2", ("a", text), ("b", text)).read_bytes(),
        zip_of(tmp_path / "3", ("a", text), ("b", text)).read_bytes(),
        lzma.compress(tar_of(tmp_path / "4", ("a", text)).read_bytes()),
        gzip.compress(text),
    ]
    refused = 0
    for _ in range(200):
        content = bytearray(draw.choice(undamaged))
        for _ in range(draw.randrange(1, 6)):
            content[draw.randrange(len(content))] = draw.randrange(256)
        content = content[: draw.choice([len(content), draw.randrange(len(content))])]
        (tmp_path / "damaged").write_bytes(content)
        try:
            extract(tmp_path / "damaged", tmp_path / "out", max_bytes=1 << 20)
        except UserError:
            refused += 1
    assert 0 < refused < 200
    assert not [name for name in os.listdir(tmp_path / "out") if name.startswith(".extract")]
