"""The commands that are killed at random moments: their command lines and what they begin with.

A command acts on a folder `{out}`, of which everything is compared in the end. A folder that a
killed command leaves behind is therefore a difference, too.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

SETTINGS: dict[str, Any] = {
    "cell": "luong", "src": "src", "tgt": "tgt", "num_units": 12, "embedding_size": 8,
    "num_layers": 1, "optimizer": "adam", "learning_rate": 0.01, "batch_size": 16, "dropout": 0.2,
    "num_train_steps": 18, "steps_per_stats": 2, "steps_per_checkpoint": 3,
    "steps_per_external_eval": 9, "num_keep_ckpts": 3, "avg_ckpts": True, "infer_mode": "greedy",
    "tgt_max_len_infer": 8, "num_attention_images": 0,
}  # fmt: skip
PAIRS = 96


class Command(NamedTuple):
    """A command, or several that together have one result."""

    lines: tuple[str, ...]  # run one after the other, with `{data}`, the corpus, and `{out}`
    trained: bool = True  # `{out}/run` is there when they begin, a run that has ended
    prepare: str = ""  # `module:function` to call first, with the corpus; not in a shell
    waits: bool = False  # for processes of its own, so that its CPU time says little


def training_flags(folder: Path, out: Path) -> list[str]:
    """Returns the flags of the short training on the corpus in `folder`."""
    prefixes = {f"{split}_prefix": folder / split for split in ("train", "dev", "test")}
    flags = {"out_dir": out, **prefixes, **SETTINGS}
    return [f"--{name}={value}" for name, value in flags.items()]


_BEAM = "--infer_mode=beam_search --beam_width=3"
_JOB = (
    "--out_dir={{out}}/run --inference_input_file={{data}}/train.src "
    "--alignment_file={{out}}/links --inference_output_file={{out}}/translations "
    "--num_workers=2 --jobid={}"
)
_TRAIN = " ".join(training_flags(Path("{data}"), Path("{out}")))
COMMANDS = {
    "train": Command((_TRAIN,), trained=False),
    "reproduce": Command(
        ("reproduce synthetic --out_dir={out}/runs --results_dir={out}/results",),
        trained=False,
        prepare="benchmarks.trust.killable:small_table",
        waits=True,
    ),
    "prepare": Command(
        tuple(
            "prepare --src=src --tgt=tgt --train_prefix={data}/train --dev_prefix={data}/dev "
            f"--output={{out}}/{kind} --subwords={kind} --vocab_size={size}"
            for kind, size in (("bpe", 60), ("spm", 90), ("words", 0))
        ),
        trained=False,
    ),
    "synthetic": Command(
        ("synthetic --output_dir={out}/corpus --train=900 --dev=40 --test=40",), trained=False
    ),
    "lexicon": Command(("lexicon --out_dir={out}/run",)),
    "shortlist": Command(("shortlist --out_dir={out}/run",)),
    "datastore": Command(
        (
            "datastore --model={out}/run --translation_memory={data}/train.src,{data}/train.tgt "
            "--output={out}/memory --keys",
        )
    ),
    "export": Command(("export --out_dir={out}/run", "export --out_dir={out}/run")),
    "evaluate": Command(
        (f"evaluate --out_dir={{out}}/run --inference_output_file={{out}}/scores {_BEAM}",)
    ),
    "tune": Command(
        (f"tune --out_dir={{out}}/run --inference_output_file={{out}}/points {_BEAM}",)
    ),
    "translate": Command(
        ("translate --model={out}/run --input={data}/train.src --output={out}/translations",)
    ),
    "jobs": Command((_JOB.format(0), _JOB.format(1))),
}


def small_table(folder: str) -> None:
    """Puts a table of one tiny row in place of the synthetic one, in this process."""
    from tfmann.papers import table_corpus
    from tfmann.papers.table import Row
    from tfmann.papers.tables import TABLES
    from tfmann.utils import resources

    root = Path(folder, "shipped")
    path = root / "hparams" / "tiny" / "luong.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    names = {"src", "tgt"}  # of the corpus; the table names them
    path.write_text(json.dumps({k: v for k, v in SETTINGS.items() if k not in names}))
    resources._ROOT = root
    table_corpus.SYNTHETIC_PAIRS = {"train": PAIRS, "dev": 6, "test": 6}
    TABLES["synthetic"] = TABLES["synthetic"]._replace(rows=(Row("luong", "a tiny row"),))
