"""The provenance of a result: revision, versions, hardware, date."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

from tfmann import __version__
from tfmann.utils import processor

_PACKAGES = ("tensorflow", "tensorflow-addons", "tensorflow-text", "sacrebleu", "numpy")


def provenance() -> dict[str, Any]:
    """Returns a record of where and when a result was made."""
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "revision": _revision(),
        "versions": {
            "python": platform.python_version(),
            **{name: _version(name) for name in _PACKAGES},
        },
        "hardware": {"cpu": processor.name(), "cores": os.cpu_count(), "gpus": _gpus()},
    }


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:  # e.g. tensorflow-addons on Python 3.12
        return "not installed"


def _revision() -> str:
    """Returns the git commit of a checkout, with `+` if files differ from it; else the release."""
    root = Path(__file__).parents[2]
    if not (root / ".git").exists():  # git might find a project around the installed package
        return f"release {__version__}"

    def git(*command: str) -> str:
        result = subprocess.run(
            ["git", "-C", str(root), *command], capture_output=True, text=True, check=True
        )
        return result.stdout.strip()

    try:
        changed = git("status", "--porcelain", "--untracked-files=no", "--", "tfmann", "hparams")
        return git("rev-parse", "--short=12", "HEAD") + ("+" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _gpus() -> list[str]:
    if "tensorflow" not in sys.modules:
        return []
    import tensorflow as tf

    devices = tf.config.list_physical_devices("GPU")
    return [tf.config.experimental.get_device_details(d).get("device_name", "?") for d in devices]
