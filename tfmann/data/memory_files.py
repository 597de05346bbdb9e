"""The files of the settings `translation_memory` and `lexical_memory`.

The first names two files, SOURCE,TARGET, line by line, or a folder that `tfmann datastore` made of
them; the second a file that `tfmann memorize` made.
"""

from __future__ import annotations

import os
import stat

from tfmann.config import SearchSettings
from tfmann.data import datastore_record, meta_network_file
from tfmann.data.text_files import require_parallel
from tfmann.errors import UsageError, UserError


def file_pair(setting: str) -> tuple[str, str]:
    """Returns the two files that a setting names.

    Raises:
      UsageError: it names something else.
    """
    files = setting.split(",")
    if len(files) != 2 or not all(files):
        raise UsageError(
            f"translation_memory={setting!r}: expected two files with a comma between them, "
            "SOURCE,TARGET, or a folder that `tfmann datastore` made"
        )
    return files[0], files[1]


def paths(hparams: SearchSettings) -> list[str]:
    """Returns the files that decide what a memory and its network are; none without one."""
    setting = hparams.translation_memory
    if not setting:
        return [hparams.lexical_memory] if hparams.lexical_memory else []
    network = [hparams.translation_memory_adaptive] if hparams.translation_memory_adaptive else []
    if os.path.isdir(setting):
        return [datastore_record.record_path(setting), *network]
    return [*file_pair(setting), *network]


def contents(hparams: SearchSettings) -> list[str]:
    """Returns every file of a memory and its network, those in the folder of a datastore too."""
    setting = hparams.translation_memory
    if not setting or not os.path.isdir(setting):
        return paths(hparams)
    return [*(os.path.join(setting, name) for name in sorted(os.listdir(setting))), *paths(hparams)]


def require(hparams: SearchSettings) -> None:
    """Checks the files of a memory, without reading their text.

    Raises:
      UsageError: the setting names neither two files nor a folder.
      UserError: a file is missing, empty or a pipe, the two have different numbers of lines, the
        folder is none of `tfmann datastore`, or the network of `translation_memory_adaptive` is not
        of these settings.
    """
    if hparams.lexical_memory and not os.path.isfile(hparams.lexical_memory):
        raise UserError(
            f"lexical_memory: there is no file {hparams.lexical_memory}: `tfmann memorize` makes "
            "one for a model"
        )
    setting = hparams.translation_memory
    if not setting:
        return
    if os.path.isdir(setting):
        datastore_record.read_record(setting)
    else:
        files = file_pair(setting)
        for path in files:
            if os.path.exists(path) and stat.S_ISFIFO(os.stat(path).st_mode):
                raise UserError(
                    f"translation_memory: {path} is a pipe, and a memory is read more than once: "
                    "write the text to a file first"
                )
        require_parallel(*files)
    if hparams.translation_memory_adaptive:
        meta_network_file.read(hparams)
