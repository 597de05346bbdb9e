"""The checks of a command line before TensorFlow is loaded: flags, settings, files."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tfmann import config
from tfmann.config import HParams, SearchSettings
from tfmann.data import corpus_paths, input_checks, lexicon, memory_files
from tfmann.data.text_files import iter_documents, iter_lines, require_parallel
from tfmann.errors import UsageError, UserError
from tfmann.export import export_folder
from tfmann.export import settings as export_settings

MODES = ("train", "infer", "score", "align", "eval", "tune", "lexicon", "shortlist", "export")

# Flags that only some modes use: these modes, and advice for the others.
_USED = {
    "inference_input_file": (
        ("infer", "score", "align", "eval", "tune"),
        "leave out --mode to translate",
    ),
    "inference_output_file": (
        ("infer", "score", "align", "eval", "tune"),
        "to translate, give --inference_input_file",
    ),
    "inference_ref_file": (
        ("infer", "score", "align", "eval", "tune"),
        "give --mode=score, align or eval, or --inference_input_file",
    ),
    "ckpt": (
        ("infer", "score", "align", "eval", "tune", "export"),
        "--init_checkpoint starts a run from other weights",
    ),
    "ensemble": (
        ("infer", "score", "align", "eval"),
        "an ensemble translates, scores, aligns and evaluates, and does nothing else",
    ),
    "alignment_file": (
        ("infer",),
        "it is for what --inference_input_file is translated to; "
        "--mode=align writes to --inference_output_file",
    ),
    "inference_document_file": (
        ("infer", "score", "align", "eval", "tune"),
        "training takes documents from TRAIN_PREFIX.docs",
    ),
    "inference_contrast_file": (("score",), "it is compared with --inference_ref_file there"),
    "word_scores": (("score",), "it adds the scores of tokens to --mode=score"),
    "inference_prefix_file": (("infer",), "it is what translations begin with"),
    "inference_constraint_file": (("infer",), "it is what translations contain"),
    "document_history": (("infer",), "it is what translations depend on"),
    "document_history_seed": (("infer",), "it applies only to --document_history=other"),
    "gold_file": (
        ("align", "eval"),
        "it is for --mode=align, or eval, with --inference_input_file and --inference_ref_file",
    ),
    "data": (("train", "lexicon"), "a trained model has its own vocabularies and subwords"),
    "export_dir": (("export",), "it is where --mode=export writes"),
}
# Flags of every mode, and those of a file that several jobs translate.
_COMMON = ("out_dir", "hparams_path", "print_hparams")
_JOBS = ("num_workers", "jobid")


def flags_of(mode: str | None) -> tuple[str, ...]:
    """Returns the flags besides settings: those that `mode` uses, or all."""
    if mode is None:
        return (*_COMMON, "mode", *_USED, *_JOBS, "help", "version")
    used = [name for name, (modes, _) in _USED.items() if mode in modes]
    return (*_COMMON, *used, *(_JOBS if mode == "infer" else ()))


def refuse_empty_names(flags: Any) -> None:
    """Raises UsageError for the first flag that names a file or folder, and is empty.

    An empty `--out_dir` is as none; an empty setting is a value.
    """
    for name in flags:
        if name != "out_dir" and name not in config.FIELDS:
            input_checks.refuse_empty(flags[name].value, name)


def check_flags(mode: str, flags: Any) -> None:
    """Raises UsageError for the first flag that `mode` needs and lacks, or would ignore."""
    if not flags.out_dir:
        raise UsageError(
            "--out_dir is not given: the folder of the run; --help has examples and all flags"
        )
    for name, (modes, advice) in _USED.items():
        if getattr(flags, name) and mode not in modes:
            raise UsageError(f"--mode={mode} does not use --{name}: {advice}")
    source, reference = flags.inference_input_file, flags.inference_ref_file
    if mode in ("infer", "score", "align") and not source:
        raise UsageError(f"--mode={mode} needs --inference_input_file (or - for standard input)")
    if mode in ("score", "align") and not reference:
        raise UsageError(f"--mode={mode} needs --inference_ref_file, the translations")
    if source == "-" and sys.stdin is None:
        raise UserError("standard input is closed: give a file as --inference_input_file")
    if mode in ("score", "align") and source == "-":
        raise UsageError(f"--mode={mode} reads pairs from two files, not from standard input")
    if mode in ("eval", "tune") and source and not reference:
        raise UsageError(f"--mode={mode} with --inference_input_file needs --inference_ref_file")
    if mode in ("eval", "tune") and reference and not source:
        raise UsageError(f"--mode={mode} with --inference_ref_file needs --inference_input_file")
    if mode == "tune" and _is_stream(source):
        raise UsageError(
            "--mode=tune translates the text several times: give a file, not standard input or a "
            "pipe"
        )
    if flags.word_scores and flags.inference_contrast_file:
        raise UsageError("--word_scores is not for --inference_contrast_file: give one of them")
    if flags.inference_document_file and not source:
        raise UsageError(
            "--inference_document_file describes the lines of --inference_input_file: give both"
        )
    _check_history(flags)
    if flags.gold_file and (not source or _is_stream(source)):
        raise UsageError("--gold_file is of the sentences of a file: give --inference_input_file")
    if flags.num_workers != 1 or flags.jobid:
        _check_jobs(mode, flags)
    _check_outputs(flags)


def _is_stream(source: str | None) -> bool:
    """Returns whether a text can be read once only: standard input, or a pipe."""
    return source == "-" or (bool(source) and Path(str(source)).is_fifo())


def _check_history(flags: Any) -> None:
    history = flags.document_history
    if history == "reference" and not flags.inference_ref_file:
        raise UsageError(
            "--document_history=reference needs --inference_ref_file, the reference translations"
        )
    if flags.document_history_seed is not None and history != "other":
        raise UsageError(
            "--document_history_seed applies only to --document_history=other: give that too"
        )
    if (flags.document_history_seed or 0) < 0:
        raise UsageError(
            f"--document_history_seed={flags.document_history_seed}: expected 0 or more"
        )
    if history in (None, "own"):
        return
    if _is_stream(flags.inference_input_file):
        raise UsageError(
            f"--document_history={history} needs whole documents: give a file, not standard input "
            "or a pipe"
        )
    if flags.num_workers != 1:
        raise UsageError(
            f"--document_history={history} needs all lines in one job: give --num_workers=1"
        )


def _check_outputs(flags: Any) -> None:
    """Raises UsageError if an output file is also an input, or the output of another flag."""
    read = ("inference_input_file", "inference_ref_file", "inference_contrast_file",
            "inference_document_file", "inference_prefix_file", "inference_constraint_file",
            "gold_file", "lexicon_file", "shortlist", "lexical_memory",
            "translation_memory_adaptive", "hparams_path")  # fmt: skip
    output, alignments = flags.inference_output_file, flags.alignment_file
    input_checks.require_folder(output, "inference_output_file")
    input_checks.require_folder(alignments, "alignment_file")
    memory = (flags.translation_memory or "").split(",")
    input_checks.refuse_overwriting(
        {"inference_output_file": output, "alignment_file": alignments},
        {
            **{f"--{name}": getattr(flags, name) for name in read},
            **{f"the translation memory {path}": path for path in memory},
        },
    )
    if output and alignments and input_checks.same_file(output, alignments):
        raise UsageError(
            f"--inference_output_file and --alignment_file are the same file, {alignments}"
        )


def _check_jobs(mode: str, flags: Any) -> None:
    from tfmann.data import file_shards  # and with it NumPy, for those who need it

    file_shards.require_job(flags.jobid, flags.num_workers)
    source, output = flags.inference_input_file, flags.inference_output_file
    if mode != "infer" or _is_stream(source) or not output:
        raise UsageError(
            "--num_workers shares out the lines of a file to translate: give "
            "--inference_input_file and --inference_output_file"
        )
    if flags.inference_ref_file:
        raise UsageError("--inference_ref_file is of all lines: score what the jobs have joined")


def ensemble_folders(flag: str | None) -> list[str]:
    """Returns the folders that `--ensemble` names.

    Raises:
      UsageError: a name is empty.
    """
    folders = flag.split(",") if flag else []
    if not all(folders):
        raise UsageError(f"--ensemble={flag}: expected folders of runs with commas between them")
    return folders


def _check_tuning(hparams: SearchSettings) -> None:
    if hparams.infer_mode != "beam_search":
        raise UsageError(
            "--mode=tune ranks what a beam search finds: give --infer_mode=beam_search"
        )
    if hparams.coverage_penalty_weight:
        raise UsageError("--mode=tune ranks by length alone: give --coverage_penalty_weight=0")


def _keep_files_of_model(mode: str, flags: Any, hparams: HParams) -> None:
    """Raises UsageError if an output is a file that the model consists of or its settings name."""
    read: dict[str, str | None] = {
        f"the memory {path}": path for path in memory_files.contents(hparams)
    }
    read["the shortlist"] = hparams.shortlist
    if hparams.replace_unk:
        read["the lexicon"] = lexicon.path(hparams, flags.out_dir)
    if mode in ("eval", "tune") and not flags.inference_input_file:
        for name, text in corpus_paths.evaluation_sets(hparams).items():
            for path in (text.source, *text.references, text.documents):
                read[f"the {name} set {path}"] = path
    outputs = {
        "inference_output_file": flags.inference_output_file,
        "alignment_file": flags.alignment_file,
    }
    input_checks.refuse_overwriting(outputs, read)
    for folder in (flags.out_dir, *ensemble_folders(flags.ensemble)):
        input_checks.refuse_overwriting_model(outputs, folder)


def export_dir(flags: Any) -> str:
    """Returns the folder that `--mode=export` writes."""
    return flags.export_dir or os.path.join(flags.out_dir, "export")


def check_model(mode: str, flags: Any, hparams: HParams) -> None:
    """Checks the files and settings of a command that uses a model.

    Raises:
      UsageError: alignments of a cell that has none, links of words for a model of subwords, an
        export of a search that samples.
      UserError: a file is missing, is not UTF-8 or does not match its source line by line, the gold
        links belong to other sentences, or something else is in the folder of the export.
    """
    if mode == "export":
        export_settings.require_fixed(hparams)
        export_folder.require_usable(export_dir(flags))
    folders = ensemble_folders(flags.ensemble)
    members = [config.settings_of_model(folder, {}).cell for folder in folders]
    if mode == "align" or flags.alignment_file:
        purpose = "--mode=align" if mode == "align" else "--alignment_file"
        config.require_alignments([hparams.cell, *members], purpose)
    lexicon.require(hparams, flags.out_dir)
    memory_files.require(hparams)
    _keep_files_of_model(mode, flags, hparams)
    if mode == "tune":
        _check_tuning(hparams)
    if mode in ("eval", "tune") and not flags.inference_input_file:
        sets = corpus_paths.evaluation_sets(hparams)
        if "dev" not in sets and mode == "tune":
            raise UsageError("--mode=tune looks at a development set: give --dev_prefix")
        if not sets:
            raise UsageError(
                "--mode=eval has nothing to translate: give --dev_prefix, --test_prefix, or "
                "--inference_input_file with --inference_ref_file"
            )
    documents = flags.inference_document_file
    if documents:
        require_documents("inference_document_file", hparams)
    _check_history_of_model(flags.document_history, hparams)
    if flags.inference_constraint_file and hparams.infer_mode == "sample":
        raise UsageError(
            "samples cannot be drawn with --inference_constraint_file: give "
            "--infer_mode=beam_search or --infer_mode=greedy"
        )
    if flags.ckpt:
        input_checks.require_checkpoint(flags.ckpt, "--ckpt")
    read = (flags.inference_input_file, flags.inference_ref_file, flags.inference_contrast_file)
    given = flags.inference_prefix_file, flags.inference_constraint_file
    for path in (*read, documents, *given):
        if path and path != "-":
            corpus_paths.require_file(path)
    _check_texts(mode, flags, hparams)
    if flags.gold_file:
        _check_gold(flags, hparams)


def _check_gold(flags: Any, hparams: HParams) -> None:
    if hparams.subword_option:
        raise UsageError(
            "--gold_file links words, and the tokens of this model are subwords "
            f"(subword_option={hparams.subword_option})"
        )
    if hparams.tokenizer:
        raise UsageError(
            "--gold_file links words between spaces, and this model makes its own tokens "
            f"(tokenizer={hparams.tokenizer}): --mode=align writes their links, and `tfmann "
            "aer` scores them by gold links of the same tokens"
        )
    from tfmann.evaluation import gold_alignments  # and with it NumPy, for those who need it

    gold = gold_alignments.read(
        flags.gold_file, flags.inference_input_file, flags.inference_ref_file
    )
    cap = hparams.src_max_len_infer
    longest = max(range(len(gold.sources)), key=lambda i: len(gold.sources[i]))
    if 0 < cap < len(gold.sources[longest]):
        raise UsageError(
            f"{flags.inference_input_file}, line {longest + 1} has {len(gold.sources[longest])} "
            f"words, of which src_max_len_infer={cap} leaves {cap}: the links of --gold_file are "
            "between all words, so set src_max_len_infer to 0"
        )


def _check_texts(mode: str, flags: Any, hparams: HParams) -> None:
    """Raises UserError before the work if a text is not UTF-8, or others do not fit their source.

    A pipe is read once, and so not here.
    """
    of_lines = [
        flags.inference_ref_file, flags.inference_prefix_file, flags.inference_constraint_file
    ]  # fmt: skip
    sets = [(flags.inference_input_file, of_lines, flags.inference_document_file)]
    if mode in ("eval", "tune") and not flags.inference_input_file:
        evaluated = corpus_paths.evaluation_sets(hparams).values()
        sets = [(text.source, [*text.references], text.documents) for text in evaluated]
    for source, others, documents in sets:
        lines = {path: _count(iter_lines(path)) for path in _files(source, *others)}
        lines.update({path: _count(iter_documents(path)) for path in _files(documents)})
        for path, count in lines.items():
            if count != lines.get(source, count):
                require_parallel(source, path)  # raises what says so


def _count(items: Iterable[Any]) -> int:
    return sum(1 for _ in items)


def _files(*paths: str | None) -> list[str]:
    return [path for path in paths if path and os.path.isfile(path)]


def require_documents(flag: str, hparams: HParams) -> None:
    """Raises UsageError for a flag about documents if the model looks at no other sentences."""
    if not hparams.reads_documents:
        raise UsageError(
            f"--{flag} has no effect: the cell {hparams.cell!r} translates every sentence by itself"
        )


def _check_history_of_model(history: str | None, hparams: HParams) -> None:
    if history:
        require_documents("document_history", hparams)
    if history == "reference" and not hparams.reads_translations:
        raise UsageError(
            f"--document_history=reference has no effect: the cell {hparams.cell!r} reads the "
            "previous source sentences, not their translations"
        )
