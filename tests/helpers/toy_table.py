"""The table that tests of `tfmann reproduce` train: its settings, command lines and records."""

import json


def settings_of(root, row):
    return root / "hparams" / "cpu" / "toy" / f"toy_{row}.json"


def write_statistics(flags, out_dir, path):
    """Writes what `tfmann inspect` would, of nothing."""
    del flags, out_dir
    path.write_text('{"statistics": [], "unit": "sentence", "revision": "r", "date": "d"}')


def saved_records(root):
    """The records of the table's rows, by name."""
    lines = (root / "results" / "vi-en-cpu.jsonl").read_text().splitlines()
    return {record["row"]: record for record in map(json.loads, lines)}


def started_command(root, corpus, *more):
    folders = [f"--out_dir={root / 'runs'}", f"--results_dir={root / 'results'}"]
    return ["vi-en", "--scale=cpu", f"--corpus_dir={corpus}", *folders, *more]
