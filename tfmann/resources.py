"""The files that come with tfmann: settings (hparams/) and manifests of corpora (data/).

In a checkout they are at its top; an installed package has copies of them inside (setup.py).
"""

from __future__ import annotations

import difflib
import os
from pathlib import Path

from tfmann.errors import UsageError

_PACKAGE = Path(__file__).parent
INSTALLED = (_PACKAGE / "shipped").is_dir()  # from a wheel; not in a checkout
_ROOT = _PACKAGE / "shipped" if INSTALLED else _PACKAGE.parent


def shipped(*parts: str | Path) -> Path:
    """A file or folder that comes with tfmann, such as `shipped("data", "tvsub.json")`."""
    return _ROOT.joinpath(*parts)


def settings_names() -> list[str]:
    """The settings files that come with tfmann, as `settings_path` takes them."""
    return _names("hparams")


def settings_path(path: str) -> str:
    """A path of the user's, or the settings file that comes with tfmann and has this name.

    The user's own file wins. `cpu/multi30k/de_en_luong.json` and
    `hparams/cpu/multi30k/de_en_luong.json` are names of the same file.

    Raises:
      UsageError: there is no such file, with the nearest name.
    """
    return _found("hparams", path, "hparams file", " (`tfmann settings` lists those)")


def manifest_path(path: str) -> str:
    """The same for the manifest of a corpus, such as `iwslt15_vi_en.json`."""
    return _found("data", path, "manifest", f": there are {', '.join(_names('data'))}")


def _names(folder: str) -> list[str]:
    top = shipped(folder)
    return sorted(path.relative_to(top).as_posix() for path in top.rglob("*.json"))


def _found(folder: str, path: str, what: str, which: str) -> str:
    if os.path.exists(path):
        return path
    prefix, names = f"{folder}/", _names(folder)
    name = path[len(prefix) :] if path.startswith(prefix) else path
    if name in names:
        return str(shipped(folder, name))
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.75)
    hint = f"; did you mean {near[0]}?" if near else which
    raise UsageError(
        f"cannot read the {what} {path}: there is no such file, and none of that name comes with "
        f"tfmann{hint}"
    )


def results_dir() -> str:
    """Where records of tables are kept if nothing else is given: a checkout has a folder."""
    return "results" if INSTALLED else str(_ROOT / "results")
