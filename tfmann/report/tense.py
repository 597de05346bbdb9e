"""The tense of a run's translations, with the documents as they are and taken apart."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from tfmann import hparams as hparams_module
from tfmann.corpus.files import iter_documents, iter_lines, write_lines
from tfmann.corpus.inputs import reference_paths
from tfmann.errors import UserError
from tfmann.evaluation.gold import words_of
from tfmann.evaluation.tense import put_back, shuffle_between_documents, tense_accuracy
from tfmann.report.records import Corpus

_SEED = 1  # of the shuffle: the same for all rows and all their seeds


def tense(corpus: Corpus, out_dir: str, cell: str) -> dict[str, int]:
    """Counts of `evaluation.tense` for the best checkpoint's translations of the test.

    Args:
      corpus: what the run was trained on.
      out_dir: its folder; what is translated in other documents is kept in its `shuffled`.
      cell: of its model.

    Returns:
      `sentences`, those `right`, and those right in the documents of others (`shuffled_right`).

    Raises:
      UserError: the model could not be used.
    """
    prefix, manifest = corpus.settings["test_prefix"], corpus.report.manifest
    documents = list(iter_documents(f"{prefix}.docs"))
    references = words_of(iter_lines(reference_paths(f"{prefix}.{manifest.target}")[0]))
    found = list(iter_lines(Path(out_dir, "output_test")))
    apart = found
    if hparams_module.document_memory(cell):  # the others translate every sentence by itself
        order = shuffle_between_documents(documents, _SEED)
        source = list(iter_lines(f"{prefix}.{manifest.source}"))
        apart = put_back(_translated([source[i] for i in order], documents, out_dir), order)
    right, sentences = tense_accuracy(words_of(found), references, documents)
    shuffled_right, _ = tense_accuracy(words_of(apart), references, documents)
    return {"sentences": sentences, "right": right, "shuffled_right": shuffled_right}


def _translated(lines: list[str], documents: list[int], out_dir: str) -> list[Any]:
    """Translations of lines by the best checkpoint, made once, in a process of its own."""
    folder = Path(out_dir, "shuffled")
    source, ids, output = (folder / name for name in ("test.src", "test.docs", "output_test"))
    if not output.exists():
        folder.mkdir(exist_ok=True)
        write_lines(source, lines)
        write_lines(ids, map(str, documents))
        command = [
            sys.executable, "-m", "tfmann.nmt", "--mode=infer", f"--out_dir={out_dir}",
            f"--inference_input_file={source}", f"--inference_document_file={ids}",
            f"--inference_output_file={output}",
        ]  # fmt: skip
        if subprocess.run(command, check=False).returncode:
            raise UserError(f"shuffled documents could not be translated by {out_dir}")
    return list(iter_lines(output))
