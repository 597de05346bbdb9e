"""The settings of a run in its folder, with those that are given on top of them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from tfmann.config.fields import fields_of
from tfmann.config.files import make, merge_saved, read_json
from tfmann.config.hparams import FIELDS, HParams
from tfmann.config.idle_settings import refuse_idle, refuse_unread
from tfmann.config.training import InitializationSettings
from tfmann.errors import UsageError, UserError
from tfmann.utils.run_folder import HPARAMS, has_weights, run_of

# How weights start; a run that has weights reads none of these.
_START = frozenset(fields_of(InitializationSettings)) - {"trainable_parameters"}


def settings_for_training(
    out_dir: str, hparams_path: str | None, explicit: Mapping[str, Any]
) -> HParams:
    """Merges settings: explicit > JSON > those of the model in `out_dir` > defaults.

    A file may have settings of several cells, and of a start that the run has behind it. On the
    command line, one that is ignored is a mistake.

    Raises:
      UsageError: a wrong setting, one without effect among `explicit`, or one that would make
        another model of that in `out_dir`.
    """
    if has_weights(out_dir):
        from_json = read_json(hparams_path) if hparams_path else {}
        saved = read_json(os.path.join(out_dir, HPARAMS))
        _refuse_another_start(explicit, saved, out_dir)
        given = {key: value for key, value in from_json.items() if key not in _START}
        hparams = merge_saved(saved, {**given, **explicit}, where=out_dir)
    else:
        hparams = make(explicit, hparams_path)
    refuse_unread(explicit, hparams.cell)
    # those of a search may be for later
    refuse_idle([name for name in explicit if FIELDS[name].kind != "inference"], hparams)
    return hparams


def _refuse_another_start(
    explicit: Mapping[str, Any], saved: Mapping[str, Any], out_dir: str
) -> None:
    """Raises UsageError if a run that has weights is told to start from others.

    What it has started from may be elsewhere now.
    """
    for name in sorted(_START & explicit.keys()):
        before, is_path = saved.get(name, FIELDS[name].default), FIELDS[name].is_path
        if explicit[name] != before and not (is_path and (before or not explicit[name])):
            raise UsageError(
                f"--{name} has no effect: {out_dir} has weights, from which its training "
                "continues. Leave it out, or give another out_dir for a new run"
            )


def is_of_training(name: str) -> bool:
    """Returns whether no use of a trained model reads a setting."""
    return FIELDS[name].kind == "training" and name != "random_seed"  # it draws samples


def refuse_settings_of_training(names: Iterable[str], user: str, prefix: str = "") -> None:
    """Raises UsageError for the first of the settings `names` that a trained model does not read.

    Args:
      names: settings that were given, all of them known.
      user: what uses the model, for the message.
      prefix: of the names, there.
    """
    for name in names:
        if is_of_training(name):
            other = f"infer_{name}"
            hint = f"did you mean {prefix}{other}?" if other in FIELDS else "training does"
            raise UsageError(f"{user} does not use {prefix}{name}: {hint}")


def settings_of_model(out_dir: str, settings: Mapping[str, Any]) -> HParams:
    """Returns the settings of the trained model in `out_dir`, some of the search replaced.

    Raises:
      UserError: there is no model.
      UsageError: an unknown setting, or one that would be another model.
    """
    path = os.path.join(out_dir, HPARAMS)
    if not os.path.exists(out_dir):
        raise UserError(
            f"{out_dir} holds no trained model: there is no such folder"
            + ("" if os.path.isabs(out_dir) else f" in {os.getcwd()}")
        )
    if not os.path.exists(path):
        run = run_of(out_dir)
        hint = (
            f"; it is a checkpoint of {run}: give that folder, and this one as ckpt" if run else ""
        )
        raise UserError(f"{out_dir} holds no trained model: there is no {HPARAMS} in it{hint}")
    return merge_saved(read_json(path), settings, where=out_dir)


def settings_of_command(out_dir: str, given: Mapping[str, Any]) -> HParams:
    """Returns what `settings_of_model` returns; refuses a setting of `given` without effect."""
    hparams = settings_of_model(out_dir, given)
    refuse_idle(given, hparams)
    return hparams
