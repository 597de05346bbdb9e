"""The files that come with tfmann: settings (hparams/) and manifests of corpora (data/).

In a checkout they are at its top; an installed package has copies of them inside (setup.py).
"""

from __future__ import annotations

import difflib
import os
from pathlib import Path

from tfmann.errors import UsageError

_PACKAGE = Path(__file__).parents[1]
INSTALLED = (_PACKAGE / "shipped").is_dir()  # from a wheel; not in a checkout
_ROOT = _PACKAGE / "shipped" if INSTALLED else _PACKAGE.parent

BASE = "base.json"  # what the settings files of a directory have in common; no settings of a run


def shipped(*parts: str | Path) -> Path:
    """Returns the path of what comes with tfmann, such as `shipped("data", "tvsub.json")`."""
    return _ROOT.joinpath(*parts)


def settings_names() -> list[str]:
    """Returns the names of the settings files that come with tfmann, for `settings_path`."""
    return _names("hparams")


def settings_path(path: str) -> str:
    """Returns the path of a settings file: the user's own, or one that comes with tfmann.

    The user's own file wins. `cpu/multi30k/de_en_luong.json` and
    `hparams/cpu/multi30k/de_en_luong.json` are names of the same file.

    Raises:
      UsageError: there is no such file; names the nearest one.
    """
    return _resolve("hparams", path, "hparams file", " (`tfmann settings` lists those)")


def manifest_path(path: str) -> str:
    """Returns the path of a corpus' manifest, such as `iwslt15_vi_en.json`, as `settings_path`."""
    return _resolve("data", path, "manifest", f": there are {', '.join(_names('data'))}")


def _names(folder: str) -> list[str]:
    top = shipped(folder)
    paths = (path for path in top.rglob("*.json") if path.name != BASE)
    return sorted(path.relative_to(top).as_posix() for path in paths)


def _resolve(folder: str, path: str, kind: str, list_hint: str) -> str:
    if os.path.exists(path):
        return path
    prefix, names = f"{folder}/", _names(folder)
    name = path[len(prefix) :] if path.startswith(prefix) else path
    if name in names:
        return str(shipped(folder, name))
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.75)
    hint = f"; did you mean {near[0]}?" if near else list_hint
    raise UsageError(
        f"cannot read the {kind} {path}: there is no such file, and none of that name comes with "
        f"tfmann{hint}"
    )


def results_dir() -> str:
    """Returns the default folder of the tables' records: a checkout's own, or `results`."""
    return "results" if INSTALLED else str(_ROOT / "results")
