"""The image: what it copies is there, is not ignored, and is all that an installation needs."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_context_is_what_is_copied(copied_files):
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert sorted(line[1:] for line in lines if line.startswith("!")) == sorted(copied_files)
    assert all((ROOT / source).exists() for source in copied_files)


def test_what_is_copied_makes_the_package(wheel):
    assert wheel.is_file()


def test_the_image_is_that_of_the_lock_and_runs_tfmann_as_an_ordinary_user():
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    installed = [line for line in lines if line.startswith("RUN") and "pip install" in line]
    assert "--require-hashes -r requirements.lock" in installed[0]
    assert all("--no-deps" in line for line in installed[1:])
    assert lines.index("USER tfmann") > max(i for i, line in enumerate(lines) if "RUN" in line)
    assert 'ENTRYPOINT ["tfmann"]' in lines
