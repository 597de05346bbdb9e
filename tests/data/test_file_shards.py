"""A file in parts: every line once and in order, documents whole, joined by whoever ends last."""

import contextlib
import itertools
import os

import numpy as np
import pytest

from tfmann.data import file_shards
from tfmann.data.file_shards import Job
from tfmann.data.text_files import iter_lines, write_lines
from tfmann.errors import UsageError, UserError
from tfmann.utils import files


@pytest.mark.parametrize("total", [0, 1, 2, 5, 97])
@pytest.mark.parametrize("count", [1, 2, 3, 8])
def test_every_line_is_one_jobs(total, count):
    runs = file_shards.split_lines(total, count)
    assert len(runs) == count
    assert [line for run in runs for line in run] == list(range(total))
    assert max(map(len, runs)) - min(map(len, runs)) <= 1


@pytest.mark.parametrize("count", [1, 2, 3, 8, 40])
def test_runs_begin_where_they_may(count):
    begins = [0, 3, 4, 20, 21, 22, 30]
    runs = file_shards.split_lines(36, count, begins)
    assert [line for run in runs for line in run] == list(range(36))
    assert {run.start for run in runs if run} <= set(begins)
    if count == 2:
        assert runs == [range(0, 20), range(20, 36)]


def test_documents_are_not_cut(tmp_path):
    stream = np.random.default_rng(1)
    sizes = stream.integers(1, 9, 20)
    ids = np.repeat(np.arange(20) % 3, sizes)  # an id may come again
    begins = set(np.flatnonzero(np.diff(ids, prepend=-1)))
    path = tmp_path / "text"
    write_lines(path, map(str, ids))
    for count in (1, 3, 7):
        shards = [
            file_shards.shard_lines(Job(i, count), str(path), True, ids) for i in range(count)
        ]
        assert [line for run in shards for line in run] == list(range(len(ids)))
        assert {run.start for run in shards if run} <= begins
    with pytest.raises(UserError, match=f"has {len(ids)} lines, and there are 3 documents"):
        file_shards.shard_lines(Job(0, 2), str(path), True, [0, 0, 1])


def test_a_blank_line_ends_a_document(tmp_path):
    path = tmp_path / "text"
    write_lines(path, ["a", "b", "", "c", " ", "", "d", "e", "f"])
    shards = [list(file_shards.shard_lines(Job(i, 3), str(path), True)) for i in range(3)]
    assert shards == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
    shards = [list(file_shards.shard_lines(Job(i, 2), str(path), True)) for i in range(2)]
    assert shards == [[0, 1, 2, 3, 4], [5, 6, 7, 8]]  # a blank line may come first
    shards_of_sentences = [
        list(file_shards.shard_lines(Job(i, 2), str(path), False)) for i in range(2)
    ]
    assert shards_of_sentences == [[0, 1, 2, 3], [4, 5, 6, 7, 8]]


@pytest.mark.parametrize("index, count", [(-1, 2), (2, 2), (0, 0), (5, 1)])
def test_jobs_that_are_none_are_refused(index, count):
    with pytest.raises(UsageError, match=f"jobid={index} with num_workers={count}"):
        file_shards.require_job(index, count)
    assert file_shards.require_job(1, 2) == (1, 2)


# --- joining ----------------------------------------------------------------------------------


def write(path, index, count, identity="w"):
    with file_shards.write_shards([str(path)], Job(index, count), identity) as (stream,):
        stream.write(f"line {index}\n".encode() * index)  # the first part is empty


@pytest.mark.parametrize("order", itertools.permutations(range(3)))
def test_whoever_ends_last_joins(order, tmp_path):
    path = tmp_path / "out"
    path.write_text("older")
    for index in order[:-1]:
        write(path, index, 3)
        assert path.read_text() == "older"
    write(path, order[-1], 3)
    assert list(iter_lines(path)) == ["line 1", "line 2", "line 2"]
    assert os.listdir(tmp_path) == ["out"]


def test_one_job_is_the_whole_file(tmp_path):
    write(tmp_path / "out", 0, 1)
    assert (tmp_path / "out").read_text() == "" and os.listdir(tmp_path) == ["out"]


def test_parts_of_something_else_are_not_joined(tmp_path):
    path = tmp_path / "out"
    write(path, 0, 2, "another text")
    write(path, 1, 2)
    assert not path.exists()
    assert file_shards.conflicting_jobs(str(path), 2, "w") == [0]
    assert file_shards.conflicting_jobs(str(path), 2, "another text") == [1]
    write(path, 0, 3)  # of another number of jobs
    assert not path.exists()
    write(path, 0, 2)
    assert path.read_text() == "line 1\n"


def test_a_job_that_fails_leaves_no_part(tmp_path):
    path = tmp_path / "out"
    write(path, 1, 2)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            with file_shards.write_shards([str(path)], Job(0, 2), "w"):
                raise ZeroDivisionError
    assert not path.exists() and len(os.listdir(tmp_path)) == 2
    write(path, 0, 2)
    assert path.read_text() == "line 1\n"


def test_a_job_that_is_run_again_is_not_joined_with_its_older_part(tmp_path):
    path = tmp_path / "out"
    write(path, 1, 2)
    with file_shards.write_shards([str(path)], Job(1, 2), "w") as (stream,):
        stream.write(b"other\n")
        write(path, 0, 2)  # meanwhile
        assert not path.exists()
    assert path.read_text() == "other\n"


def test_a_part_that_was_altered_is_named(tmp_path):
    path = tmp_path / "out"
    write(path, 1, 2)
    (tmp_path / "out-00001-of-00002").write_text("line 7\n")
    with pytest.raises(
        UserError, match="out-00001-of-00002 has changed since it was written: run job 1"
    ):
        write(path, 0, 2)
    assert not path.exists()
    write(path, 1, 2)
    assert path.read_text() == "line 1\n"


def test_parts_that_another_has_joined_are_left_to_it(tmp_path, monkeypatch):
    path = tmp_path / "out"
    write(path, 1, 2)
    real = file_shards._copy

    def slow(part, expected, out):
        real(part, expected, out)
        monkeypatch.setattr(file_shards, "_copy", real)
        file_shards._join([str(path)], 2, "w")  # the other job
        assert not [*tmp_path.glob("out-*")]

    monkeypatch.setattr(file_shards, "_copy", slow)
    write(path, 0, 2)
    assert path.read_text() == "line 1\n" and os.listdir(tmp_path) == ["out"]


def test_a_job_that_begins_to_join_while_another_ends_takes_no_line(tmp_path, monkeypatch):
    """Both have the same process id, as in two containers."""
    path = tmp_path / "out"
    write(path, 1, 2)
    second_job, real = contextlib.ExitStack(), file_shards._copy

    def last(part, expected, out):
        real(part, expected, out)
        if part.endswith("-00001-of-00002"):
            stream = second_job.enter_context(files.atomic_write(path))
            stream.write(b"of the first part\n")
            stream.flush()

    monkeypatch.setattr(file_shards, "_copy", last)
    with pytest.raises(file_shards._AlreadyJoinedError), second_job:
        write(path, 0, 2)
        raise file_shards._AlreadyJoinedError
    assert path.read_text() == "line 1\n" and os.listdir(tmp_path) == ["out"]


@pytest.mark.parametrize("removals", range(9))
def test_a_job_killed_while_it_removes_shards_leaves_nothing_when_run_again(
    removals, tmp_path, monkeypatch
):
    """Of two outputs; the other job ended well and is not run again."""
    paths = [str(tmp_path / name) for name in ("out", "links")]

    def run(jobid):
        with file_shards.write_shards(paths, Job(jobid, 2), "w") as streams:
            for stream in streams:
                stream.write(f"line {jobid}\n".encode())

    run(0)
    remove, left = file_shards._remove, list(range(removals))

    def killed(path):
        if not left:
            raise InterruptedError
        left.pop()
        remove(path)

    monkeypatch.setattr(file_shards, "_remove", killed)
    with pytest.raises(InterruptedError):
        run(1)
    monkeypatch.setattr(file_shards, "_remove", remove)
    run(1)
    assert sorted(os.listdir(tmp_path)) == ["links", "out"]
    assert {(tmp_path / name).read_text() for name in ("out", "links")} == {"line 0\nline 1\n"}


def test_an_identity_is_of_settings_and_files(tmp_path):
    first, second = tmp_path / "a", tmp_path / "b"
    first.write_text("x\n")
    second.write_text("y\n")
    identities = [
        file_shards.input_fingerprint({"beam_width": 5}, str(first), None),
        file_shards.input_fingerprint({"beam_width": 4}, str(first), None),
        file_shards.input_fingerprint({"beam_width": 5}, str(second), None),
        file_shards.input_fingerprint({"beam_width": 5}, str(first), str(first)),
    ]
    assert len(set(identities)) == 4
    assert file_shards.input_fingerprint({"beam_width": 5}, str(first), None) == identities[0]
