"""Simulated timings of programs whose true share of speed is known, and claims about it.

A benchmark times a program in turns with a baseline. The logarithm of a turn's time has a normal
error, and in some turns another program of the machine takes time of one of the two. What a process
has in common in all turns, such as where its memory lies, shifts its share by up to
`speeds.TIMING_ERROR`. `tfmann.papers.judgement` judges the records as it judges those of the
benchmarks.
"""

from __future__ import annotations

import json
import math
import statistics
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tfmann.papers import speeds
from tfmann.papers.claim import AnyClaim, SpeedClaim

FILE = "simulated.jsonl"
DISTURBED, LONGER = 0.1, 0.5  # share of disturbed turns; greatest share of time that they add
JUST_FALSE, FALSE_BY_MORE, TRUE_CLAIM = "just false", "false", "true"

# The kinds of claims, of a baseline in the same process or of a rival in another.
_SHARE = SpeedClaim("simulated", "", "82% of the baseline's", FILE, {}, 0.82, 0.82)
_ALIKE = SpeedClaim("simulated", "", "80% to 120% of a rival's", FILE, {}, 0.8, 1.2, {"cell": ""})
FASTER = _ALIKE._replace(text="faster than a rival", least=1.0, most=math.inf)
CLAIMS = (_SHARE, _ALIKE, FASTER)

Record = dict[str, Any]


class SpeedCase(NamedTuple):
    """A paper whose claims are about speed, and how its programs are timed.

    Attributes:
      truth: `JUST_FALSE`: the share of speed is at the limit of what proves the claim, and whole
        measurements have no error. They have one else. `FALSE_BY_MORE`: the share is further from
        the limit by as much; `TRUE_CLAIM`: it is the greatest that the paper allows.
      claim: one of `CLAIMS`.
      turns: of each program with its baseline.
      noise: standard deviation of the logarithm of a turn's share, without disturbances.
      claims: number of claims of the paper.
    """

    truth: str
    claim: SpeedClaim
    turns: int
    noise: float
    claims: int = 1

    @property
    def timing_error(self) -> float:
        """The greatest error of a whole measurement."""
        return 0.0 if self.truth == JUST_FALSE else speeds.TIMING_ERROR

    @property
    def share(self) -> float:
        """The true share of speed."""
        if self.truth == TRUE_CLAIM:
            return self.claim.most
        low, high = speeds.limits(self.claim, proof=True)
        return low - self.timing_error if math.isinf(high) else high + self.timing_error

    def settings(self) -> dict[str, Any]:
        """Returns what a line says of the case."""
        return {
            "truth": self.truth, "claim": self.claim.text, "claims": self.claims,
            "turns": self.turns, "noise": self.noise, "timing_error": self.timing_error,
            "share": round(self.share, 3),
        }  # fmt: skip


def paper(rng: np.random.Generator, case: SpeedCase, folder: Path) -> list[AnyClaim]:
    """Returns the claims of a paper and writes the simulated records of its programs to a folder.

    Args:
      rng: the random generator.
      case: the claims and timings.
      folder: gets the file that the claims name.
    """
    claims: list[AnyClaim] = []
    records = []
    for number in range(case.claims):
        record, rival = {"cell": f"program {number}"}, {"cell": f"rival {number}"}
        share = case.share + rng.uniform(-case.timing_error, case.timing_error)
        if case.claim.rival:
            speed = math.exp(rng.normal(0, 0.3))  # of the rival, relative to the baseline's
            records.append({**rival, **_timed(rng, case, speed)})
            records.append({**record, **_timed(rng, case, share * speed)})
            claims.append(case.claim._replace(record=record, rival=rival))
        else:
            records.append({**record, **_timed(rng, case, share)})
            claims.append(case.claim._replace(record=record))
    lines = [json.dumps(record) + "\n" for record in records]
    (folder / FILE).write_text("".join(lines), encoding="utf-8")
    return claims


def _timed(rng: np.random.Generator, case: SpeedCase, speed: float) -> Record:
    """Returns the record of a program with this speed relative to the baseline's."""
    times = 4 if case.claim.rival else 2  # in a share
    seconds = np.exp(rng.normal(0, case.noise / math.sqrt(times), (2, case.turns)))
    disturbed = rng.random(seconds.shape) < DISTURBED
    seconds *= 1 + disturbed * rng.uniform(0, LONGER, seconds.shape)
    of_baseline, of_program = seconds[0], seconds[1] / speed
    return {
        "reference": "baseline", "revision": "", "date": "2000-01-01",
        "hardware": {"cpu": "simulated", "cores": 1, "gpus": []},
        "ratio": statistics.median(of_baseline / of_program),
        "turns": [
            {"reference": float(a), "seconds": float(b)} for a, b in zip(of_baseline, of_program)
        ],
    }  # fmt: skip
