"""Records of invented runs, as results/ holds them."""

import json

from tfmann.papers.table import Table


def table(*rows, **changes):
    """Returns a table of these rows, on the synthetic corpus."""
    return Table("Toy", None, "toy", "", "dev", "test", rows)._replace(**changes)


def record(row, bleu=10.0, brevity=0.9, **more):
    """Returns the record of a run with these scores, the same on dev and test."""
    details = f"50.0/30.0/20.0/10.0 (BP = {brevity:.3f} ratio = 0.905 hyp_len = 905 ref_len = 1000)"
    scores = [
        {"value": bleu, "signature": "s", "details": details},
        {"value": bleu + 1, "signature": "s"},
    ]
    return {
        "row": row, "best": {"dev": scores, "test": scores}, "parameters": 2_500_000, "steps": 7,
        "words_per_second": 100.0, "train_seconds": 60.0, "hardware": {"cpu": "c", "gpus": []},
        "hparams": {"length_penalty_weight": 0.0}, **more,
    }  # fmt: skip


def alignment_scores(**shares):
    """Returns the scores by gold links, some of them changed."""
    alignment = {"aer": 0.5, "soft_aer": 0.6, "sentences": 4, "sure": 9, "possible": 12}
    adequacy = {"under": 0.125, "reworded": 0.25, "over": 0.03125, "judged": 16}
    return {
        "alignment": {**alignment, **{k: v for k, v in shares.items() if k in alignment}},
        "adequacy": {**adequacy, **{k: v for k, v in shares.items() if k in adequacy}},
    }


def comparison(baseline, difference, percent, bootstrap_p, sign_p):
    """Returns a recorded significance test against a baseline."""
    return {
        "baseline": baseline, "difference": difference, "percent": percent,
        "bootstrap_p": bootstrap_p, "sign_p": sign_p, "wins": 3, "losses": 2, "signature": "bs",
    }  # fmt: skip


def write_results(folder, name, *records):
    """Writes records as results/NAME.jsonl; returns the folder."""
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.jsonl").write_text("".join(json.dumps(result) + "\n" for result in records))
    return folder
