"""Trains the small models of `tfmann play` and packs them into the package: `make play-models`.

Each is trained on the synthetic corpus at a reduced size, packed with weights rounded to float16
(stored as compressed float32, so every reader takes them), and then measured as packed. The record
of all, `tfmann/play/models/models.json`, has settings, seed, BLEU and provenance.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
MODELS = ROOT / "tfmann" / "play" / "models"
RECORD = MODELS / "models.json"
SEED = 1
SIZES = {"num_units": 64, "embedding_size": 48, "random_seed": SEED, "num_attention_images": 0}
PAIRS = {"train": 10000, "dev": 300, "test": 500}


class Recipe(NamedTuple):
    """The training of one model."""

    title: str
    hparams: str
    steps: int
    documents: bool = False  # on the corpus where only a document's first sentence shows the tense
    start: str = ""  # the model whose weights it starts from
    packed: bool = True
    changes: tuple[tuple[str, Any], ...] = ()


RECIPES = {
    "luong": Recipe("Luong attention", "tiny/luong.json", 1500),
    "ntm_attention": Recipe("NTM-style attention", "tiny/ntm_attention.json", 1250),
    "kvmematt": Recipe("KVMemAtt, two rounds", "tiny/kvmematt.json", 1500),
    "rnnsearch_tense": Recipe(  # these settings lower the learning rate sooner
        "RNNSearch", "tiny/tense/rnnsearch_longer.json", 1250, documents=True, packed=False
    ),
    "cache": Recipe(
        "Continuous cache", "tiny/tense/cache.json", 500, documents=True, start="rnnsearch_tense"
    ),
    "ntm": Recipe("Neural Turing machine", "tiny/ntm.json", 2500),
    "rnnsearch": Recipe("RNNSearch", "tiny/rnnsearch.json", 1500),
    "mematt": Recipe("MemAtt", "tiny/mematt.json", 1500),
    "key_value": Recipe("Key-value attention", "tiny/key_value.json", 1500),
    "mad": Recipe("M.A.D.", "tiny/mad.json", 1500),
    "dnc": Recipe("DNC", "tiny/dnc.json", 2500),
    "coverage": Recipe("Coverage", "tiny/coverage.json", 1500),
    "memdec": Recipe("MemDec", "tiny/memdec.json", 1500),
    "past_future": Recipe("Past and Future", "tiny/past_future.json", 2500),
    "transformer": Recipe(
        "Transformer", "tiny/transformer.json", 2500, changes=(("embedding_size", 64),)
    ),
    "kvmematt_transformer": Recipe(
        "Transformer with rewritten keys",
        "tiny/kvmematt_transformer.json",
        2500,
        changes=(("num_units", 56), ("embedding_size", 56)),
    ),
    "previous": Recipe(
        "The sentence before", "tiny/tense/previous.json", 1250, True, "rnnsearch_tense"
    ),
    "summary": Recipe(
        "Summary of the document", "tiny/tense/summary.json", 1250, True, "rnnsearch_tense"
    ),
}


def main() -> int:
    """Trains and packs the models that the command line names."""
    parser = argparse.ArgumentParser(description=str(__doc__))
    parser.add_argument("--out_dir", default="runs/play", help="where runs and corpora go")
    parser.add_argument("--cells", default=",".join(RECIPES), help="names, with commas")
    args = parser.parse_args()
    out_dir = Path(args.out_dir)
    origin = _provenance()  # before a packed model changes the checkout
    for name in args.cells.split(","):
        recipe = RECIPES[name]
        if recipe.start:
            _train(recipe.start, RECIPES[recipe.start], out_dir)
        _train(name, recipe, out_dir)
        if recipe.packed:
            entry = _pack(name, recipe, out_dir, origin)
            print(f"{name}: BLEU {entry['bleu']:.1f}, {entry['bytes']} bytes", flush=True)
    return 0


def _corpus(out_dir: Path, documents: bool) -> Path:
    from tfmann.synthetic import Style, write_corpus

    folder = out_dir / ("corpus_documents" if documents else "corpus")
    if not (folder / "vocab.tgt").exists():
        write_corpus(str(folder), **PAIRS, seed=SEED, style=Style(document_tense=documents))
    return folder


def _train(name: str, recipe: Recipe, out_dir: Path) -> None:
    run, corpus = out_dir / name, _corpus(out_dir, recipe.documents)
    settings = {
        **SIZES,
        "train_prefix": str(corpus / "train"),
        "dev_prefix": str(corpus / "dev"),
        "vocab_prefix": str(corpus / "vocab"),
        "num_train_steps": recipe.steps,
        **dict(recipe.changes),
    }
    if recipe.start:
        settings["init_checkpoint"] = str(out_dir / recipe.start / "best_bleu")
    if (run / "results.json").exists():
        _require_same_settings(run, recipe, settings)
        return
    flags = [f"--{key}={value}" for key, value in settings.items()]
    command = ["train", f"--hparams_path={recipe.hparams}", f"--out_dir={run}", *flags]
    subprocess.run([sys.executable, "-m", "tfmann", *command], check=True)


def _require_same_settings(run: Path, recipe: Recipe, settings: dict[str, Any]) -> None:
    """Raises SystemExit if a finished run was trained with other settings than the recipe's."""
    from tfmann import config
    from tfmann.utils import resources

    saved = json.loads((run / "hparams.json").read_text(encoding="utf-8"))
    changes = config.changes(saved, config.make(settings, resources.settings_path(recipe.hparams)))
    if changes:
        raise SystemExit(
            f"{run} was trained with other settings than today's: {', '.join(changes)}. "
            "Delete it, or give another --out_dir"
        )


def _provenance() -> dict[str, Any]:
    from tfmann.utils.provenance import provenance

    return provenance()


def _pack(name: str, recipe: Recipe, out_dir: Path, origin: dict[str, Any]) -> dict[str, Any]:
    """Writes the model's folder in the package, measures it, and updates the record."""
    from tfmann import config
    from tfmann.data import run_vocabularies
    from tfmann.training import checkpoint

    run, folder = out_dir / name, MODELS / name
    saved = json.loads((run / "hparams.json").read_text(encoding="utf-8"))
    paths = ("train_prefix", "dev_prefix", "test_prefix", "vocab_prefix", "init_checkpoint")
    (folder / "best_bleu").mkdir(parents=True, exist_ok=True)
    hparams = config.make({key: value for key, value in saved.items() if key not in paths})
    languages = run_vocabularies.load(config.make({}, str(run / "hparams.json")), str(run))
    config.save(hparams, folder / "hparams.json")
    run_vocabularies.save(languages, hparams, str(folder))
    source = run / "best_bleu"
    state = checkpoint.read_state(str(source))
    weights = checkpoint.read_arrays(str(source))
    rounded = {key: value.astype(np.float16).astype(value.dtype) for key, value in weights.items()}
    step = {key: value for key, value in state.items() if key in ("step",)}
    checkpoint.write(str(folder / "best_bleu"), rounded, None, step)
    _compress(folder / "best_bleu")
    _write_example(folder, recipe.documents)
    entry = {
        "title": recipe.title,
        "cell": saved["cell"],
        "documents": recipe.documents,
        "steps": recipe.steps,
        "seed": SEED,
        "hparams": recipe.hparams,
        "changes": {**SIZES, **dict(recipe.changes)},
        "start": recipe.start,
        "pairs": PAIRS,
        "bleu": _bleu(folder, _corpus(out_dir, recipe.documents)),
        "bytes": sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()),
        **origin,
    }
    record = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    record[name] = entry
    ordered = {key: record[key] for key in RECIPES if key in record}
    RECORD.write_text(json.dumps(ordered, indent=1) + "\n", encoding="utf-8")
    return entry


def _compress(folder: Path) -> None:
    """Deflates the archive of weights and seals the state again."""
    from tfmann.utils.checksummed_json import add_checksum

    path = folder / "weights.npz"
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, content in parts.items():
            # a fixed date, so that the same weights are the same file
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED, 9)
    state_path = folder / "state.json"
    state = json.loads(state_path.read_text(encoding="utf-8"))
    state = {key: value for key, value in state.items() if not key.startswith("sha256_of")}
    state["sha256"] = {"weights.npz": hashlib.sha256(path.read_bytes()).hexdigest()}
    state_path.write_text(json.dumps(add_checksum(state), indent=1), encoding="utf-8")


def _write_example(folder: Path, documents: bool) -> None:
    """Writes the trace that the page shows while the model is still being loaded."""
    from tfmann import api
    from tfmann.play import examples, library
    from tfmann.play.tracing import trace_line

    lines = list((examples.DOCUMENTS if documents else examples.SENTENCES)[0])
    example = {"lines": lines, "trace": trace_line(api.load(str(folder)), lines)}
    text = json.dumps(example, ensure_ascii=False, separators=(",", ":"))
    (folder / library.EXAMPLE).write_text(f"{text}\n", encoding="utf-8")


def _bleu(folder: Path, corpus: Path) -> float:
    """Computes the packed model's BLEU on the test set, in documents if it reads them."""
    import sacrebleu

    from tfmann import api

    lines = (corpus / "test.src").read_text(encoding="utf-8").splitlines()
    references = (corpus / "test.tgt").read_text(encoding="utf-8").splitlines()
    documents = [int(n) for n in (corpus / "test.docs").read_text(encoding="utf-8").split()]
    model = api.load(str(folder))
    texts = [n_best[0].text for n_best in model.translate(lines, documents=documents)]
    return sacrebleu.corpus_bleu(texts, [references], tokenize="none", force=True).score


if __name__ == "__main__":
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    sys.exit(main())
