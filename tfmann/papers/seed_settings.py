"""The settings of training in which the runs of a row differ."""

from __future__ import annotations

from collections.abc import Sequence

from tfmann import config
from tfmann.papers.metrics import Record

# settings that say how a run is made, not what comes of it
_OF_A_RUN = (
    "random_seed",
    "distribution",
    "steps_per_stats",
    "num_attention_images",
    "num_keep_ckpts",
)


def differing(records: Sequence[Record]) -> dict[str, list[str]]:
    """Returns the settings in which runs of a row differ, each with the values of the runs.

    A record that is older than a setting was made as the setting's default is. A rate that falls
    over `decay_steps=0` updates falls over all of them, so it is no other than with their number.
    """
    settings = [record.get("hparams", {}) for record in records]
    differing_values = {}
    for key, rule in config.FIELDS.items():
        if rule.kind in ("architecture", "training") and not rule.is_path and key not in _OF_A_RUN:
            chosen = [of_run.get(key, rule.default) for of_run in settings]
            if key == "decay_steps":
                updates = [of_run.get("num_train_steps") for of_run in settings]
                chosen = [steps or total for steps, total in zip(chosen, updates)]
            values = list(map(str, chosen))
            if len({*values}) > 1:
                differing_values[key] = values
    return differing_values
