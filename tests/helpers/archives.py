"""The archives of a checkpoint."""

from tfmann.training import checkpoint


def archives(out):
    """Weights and slots of every checkpoint, by their bits."""
    arrays = {}
    for folder in [*(out / "checkpoints").glob("step-*"), out / "best_bleu"]:
        for path in folder.glob("*.npz"):
            for name, value in checkpoint.read_arrays(str(folder), path.stem).items():
                arrays[f"{folder.name}/{path.stem}/{name}"] = (value.dtype, value.tobytes())
    return arrays
