"""The table that tests of `tfmann reproduce` train: its settings, and its command lines."""


def settings_of(root, row):
    return root / "hparams" / "cpu" / "toy" / f"toy_{row}.json"


def write_statistics(flags, out_dir, path):
    """Writes what `tfmann inspect` would, of nothing."""
    del flags, out_dir
    path.write_text('{"statistics": [], "unit": "sentence", "revision": "r", "date": "d"}')


def started_command(root, corpus, *more):
    folders = [f"--out_dir={root / 'runs'}", f"--results_dir={root / 'results'}"]
    return ["vi-en", "--scale=cpu", f"--corpus_dir={corpus}", *folders, *more]
