"""The settings of a run: every hyper-parameter, read from JSON files and from flags.

Nothing here imports TensorFlow.
"""

from tfmann.config.architecture import Architecture
from tfmann.config.cells import (
    CELLS,
    CacheOptions,
    CellSpec,
    KeyValueOptions,
    KVMemAttOptions,
    LuongOptions,
    NTMAttentionOptions,
    RNNSearchOptions,
    cell_spec,
    require_alignments,
)
from tfmann.config.data import DataSettings
from tfmann.config.fields import fields_of
from tfmann.config.files import changes, chosen, make, merge_saved, read_json, save, to_json
from tfmann.config.hparams import (
    FIELDS,
    HParams,
    reads_documents,
    reads_translations,
)
from tfmann.config.idle_settings import cells_by_setting, refuse_idle, refuse_unread
from tfmann.config.memory_options import (
    DNCOptions,
    DotProductOptions,
    MADOptions,
    NTMOptions,
)
from tfmann.config.run_settings import (
    is_of_training,
    refuse_settings_of_training,
    settings_for_training,
    settings_of_command,
    settings_of_model,
)
from tfmann.config.search import SearchSettings, TranslationSettings
from tfmann.config.training import (
    OptimizerSettings,
    RunSettings,
    TrainingSettings,
)

__all__ = [
    "CELLS",
    "FIELDS",
    "Architecture",
    "CacheOptions",
    "CellSpec",
    "DNCOptions",
    "DataSettings",
    "DotProductOptions",
    "HParams",
    "KVMemAttOptions",
    "KeyValueOptions",
    "LuongOptions",
    "MADOptions",
    "NTMAttentionOptions",
    "NTMOptions",
    "OptimizerSettings",
    "RNNSearchOptions",
    "RunSettings",
    "SearchSettings",
    "TrainingSettings",
    "TranslationSettings",
    "cell_spec",
    "cells_by_setting",
    "changes",
    "chosen",
    "fields_of",
    "is_of_training",
    "make",
    "merge_saved",
    "read_json",
    "reads_documents",
    "reads_translations",
    "refuse_idle",
    "refuse_settings_of_training",
    "refuse_unread",
    "require_alignments",
    "save",
    "settings_for_training",
    "settings_of_command",
    "settings_of_model",
    "to_json",
]
