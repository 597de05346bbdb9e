"""Small archives that would take gigabytes: of headers, of members, of what unpacks them."""

import gzip
import io
import lzma
import struct
import tarfile
import tracemalloc
import zipfile
import zlib

import pytest

from tfmann.datasets import archives, tar
from tfmann.errors import UserError

BIG = 8 << 20  # bytes that a few kB claim, and hold
PEAK = 2 << 20


def header(name, size, kind):
    info = tarfile.TarInfo(name)
    info.size, info.type = size, kind
    return info.tobuf(tarfile.GNU_FORMAT)


def member(name=b"a", content=b"mine"):
    return header(name.decode(), len(content), tarfile.REGTYPE) + content.ljust(512, b"\0")


def sparse():
    """A member whose map of holes does not end."""
    info = bytearray(header("s", 512, tarfile.GNUTYPE_SPARSE))
    info[482] = 1  # more of the map follows
    info[148:156] = b" " * 8
    info[148:156] = b"%06o\0 " % sum(info)
    entry = b"%011o\0" % 1
    return bytes(info) + (entry * 42 + b"\1" * 8) * (BIG // 512)


def pax_sparse():
    """A member whose map of holes, in its content, does not end."""
    records = b"22 GNU.sparse.major=1\n22 GNU.sparse.minor=0\n"
    return (
        header("p", len(records), tarfile.XHDTYPE) + records.ljust(512, b"\0")
        + header("s", BIG, tarfile.REGTYPE) + b"99999999\n" + b"1\n" * (BIG // 2)
    )  # fmt: skip


BOMBS = {
    "pax": lambda: header("h", BIG, tarfile.XHDTYPE) + bytes(BIG),
    "global": lambda: header("h", BIG, tarfile.XGLTYPE) + bytes(BIG),
    "name": lambda: header("h", BIG, tarfile.GNUTYPE_LONGNAME) + b"n" * BIG,
    "link": lambda: header("h", BIG, tarfile.GNUTYPE_LONGLINK) + b"n" * BIG,
    "sparse": sparse,
    "pax sparse": pax_sparse,
}


def peak_of(work):
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("first", [b"", member(b"first")], ids=["first", "second"])
@pytest.mark.parametrize("kind", BOMBS)
def test_a_header_of_any_length_is_not_read(tmp_path, monkeypatch, kind, first):
    monkeypatch.setattr(tar, "MAX_HEADER_BYTES", 1 << 16)
    archive, out = tmp_path / "x.tgz", tmp_path / "out"
    archive.write_bytes(gzip.compress(first + BOMBS[kind]() + member(), 1))
    assert archive.stat().st_size < 1 << 20

    def refused():
        with pytest.raises(UserError, match=r"x\.tgz: a header in it has more than 65,536 bytes"):
            archives.extract(archive, out, max_bytes=1000)
        with pytest.raises(UserError, match=r"x\.tgz: a header in it has more than 65,536 bytes"):
            archives.extract_member(archive, "a", tmp_path / "a")

    assert peak_of(refused) < PEAK
    assert list(out.iterdir()) == [] and not (tmp_path / "a").exists()


def test_global_headers_do_not_add_up(tmp_path):
    value = b"v" * 900_000
    parts = []
    for number in range(4):
        record = b"900016 k%07d=%s\n" % (number, value)
        body = record[:900_015] + b"\n"
        parts += [header("g", len(body), tarfile.XGLTYPE), body, bytes(-len(body) % 512)]
        parts.append(member(b"m%d" % number))
    (tmp_path / "x.tgz").write_bytes(gzip.compress(b"".join(parts), 1))
    with pytest.raises(UserError, match="its headers hold more than 1,048,576 bytes"):
        archives.extract_member(tmp_path / "x.tgz", "m3", tmp_path / "out")


def test_members_that_are_passed_are_not_kept(tmp_path):
    folder = header("d", 0, tarfile.DIRTYPE)
    archive = tmp_path / "x.tgz"
    archive.write_bytes(gzip.compress(folder * 4000 + member(), 1))
    peak = peak_of(lambda: archives.extract_member(archive, "a", tmp_path / "out"))
    assert (tmp_path / "out").read_bytes() == b"mine" and peak < 1 << 20


def test_xz_is_not_given_all_the_memory_that_it_asks_for(tmp_path):
    packed = bytearray(lzma.compress(member() + bytes(1024), preset=0))
    # The header of the first block: its size, flags, the id of LZMA2, the length and the value of
    # the dictionary's size, a checksum.
    assert packed[12:16] == b"\x02\x00\x21\x01"
    packed[16] = 39  # 3 GiB
    packed[20:24] = struct.pack("<I", zlib.crc32(bytes(packed[12:20])))
    (tmp_path / "x.txz").write_bytes(packed)
    with pytest.raises(UserError, match="takes more than 268,435,456 bytes to unpack"):
        archives.extract(tmp_path / "x.txz", tmp_path / "out")
    with zipfile.ZipFile(tmp_path / "x.zip", "w", zipfile.ZIP_LZMA) as bundle:
        bundle.writestr("a", "mine")
    with pytest.raises(UserError, match="the member 'a' is packed in an unusual way"):
        archives.extract(tmp_path / "x.zip", tmp_path / "out")


def test_xz_in_several_streams(tmp_path):
    content = member(b"a", b"first") + member(b"b", b"second") + bytes(1024)
    cut = [lzma.compress(content[start : start + 700]) for start in range(0, len(content), 700)]
    (tmp_path / "x").write_bytes((b"\0" * 8).join(cut) + bytes(4))
    paths = archives.extract(tmp_path / "x", tmp_path / "out")
    assert [path.read_bytes() for path in paths] == [b"first", b"second"]
    (tmp_path / "x").write_bytes(cut[0][:-20])
    with pytest.raises(UserError, match="not a sound archive"):
        archives.extract(tmp_path / "x", tmp_path / "out2")


def test_what_tarfile_writes_is_read_as_tarfile_reads_it(tmp_path):
    names = ["plain", "l" * 300, "größe/" + "猫" * 60, "d" * 90 + "/" + "e" * 80]
    for form in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        expected = {}
        with tarfile.open(tmp_path / "x", "w:bz2", format=form) as bundle:
            for number, name in enumerate(names):
                info = tarfile.TarInfo(name)
                content = bytes([65 + number]) * (511 + number)
                info.size = len(content)
                try:
                    bundle.addfile(info, io.BytesIO(content))
                except ValueError:  # a name that this format has no room for
                    continue
                expected[name] = content
        read = {info.name: stream.read() for info, stream in tar.members(tmp_path / "x")}
        assert read == expected and len(expected) > 1
