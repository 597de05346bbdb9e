"""Claims and records of runs whose verdict is known."""

from pathlib import Path

import numpy as np
from helpers.records import record

from tfmann.papers import judgement
from tfmann.papers.claim import Claim

NO_FOLDER = Path("no benchmarks")


def claim(expect="higher", **changes):
    example = Claim("Collier & Beel 2019", "1", "text", expect, "mad_1", "luong", ("vi-en",))
    return example._replace(**changes)


def resampled(scores, sentences=100, seed=1):
    resamples = {
        "sentences": sentences,
        "seed": seed,
        "bleu": [round(100 * score) for score in scores],
    }
    return {"test": resamples, "dev": resamples}


def history(*scores):
    """Of a run with an evaluation every 100 updates."""
    return [{"step": 100 * i, "dev_bleu": score} for i, score in enumerate(scores, start=1)]


FLAT = {"history": history(9.0, 10.0, 10.0, 10.0, 10.0)}


def runs(ours, theirs, spread=0.0, **more):
    """Records of two rows, a seed a number; `spread`: how far resampling moves the first."""
    more = {**FLAT, **more}
    moves = spread * np.tile([-1.0, 1.0], 500)
    records = []
    for seed, (a, b) in enumerate(zip(ours, theirs), start=1):
        for row, bleu, moved in (("mad_1", a, moves), ("luong", b, 0 * moves)):
            scores = resampled(bleu + moved)
            records.append(record(row, bleu, seed=seed, resampled=scores, **more))
    return records


def judge_claim(tested_claim, records, name="vi-en", scale="cpu", folder=NO_FOLDER):
    """The verdicts on one claim alone, so that no p value is adjusted."""
    verdicts = judgement.judge([tested_claim], {(name, scale): records} if records else {}, folder)
    return [verdict for _, verdict in verdicts]


def status(tested_claim, records):
    (verdict,) = judge_claim(tested_claim, records)
    return verdict.status
