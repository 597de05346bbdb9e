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
    folder = shipped("hparams")
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.json"))


def settings_path(path: str) -> str:
    """A path of the user's, or the file that comes with tfmann and has this name.

    The user's own file wins. `cpu/multi30k/de_en_luong.json` and
    `hparams/cpu/multi30k/de_en_luong.json` are names of the same file.

    Raises:
      UsageError: there is no such file, with the nearest name.
    """
    if os.path.exists(path):
        return path
    prefix = "hparams/"
    name, names = path[len(prefix) * path.startswith(prefix) :], settings_names()
    if name in names:
        return str(shipped("hparams", name))
    near = difflib.get_close_matches(name, names, n=1)
    hint = f"; did you mean {near[0]}?" if near else " (`tfmann settings` lists those)"
    raise UsageError(
        f"cannot read the hparams file {path}: there is no such file, and none of that name comes "
        f"with tfmann{hint}"
    )


def results_dir() -> str:
    """Where records of tables are kept if nothing else is given: a checkout has a folder."""
    return "results" if INSTALLED else str(_ROOT / "results")
