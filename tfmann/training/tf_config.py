"""The machines that train together, from the environment variable TF_CONFIG.

    {"cluster": {"worker": ["host0:port", "host1:port"]}, "task": {"type": "worker", "index": 0}}

Every process gets the same `cluster` and a `task` of its own. Without a task of type `chief`,
worker 0 is the chief.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from tfmann.errors import UsageError

_EXAMPLE = (
    '{"cluster": {"worker": ["host0:2222", "host1:2222"]}, "task": {"type": "worker", "index": 0}}'
)
_ADDRESS = re.compile(r"\S+:\d{1,5}")


class Task(NamedTuple):
    """A process among those that train together."""

    rank: int = 0  # 0 is the chief
    size: int = 1
    address: str = ""


def read_task(environment: Mapping[str, str] = os.environ) -> Task:
    """Reads this process's task; without TF_CONFIG, or with one worker in it, it is alone.

    Raises:
      UsageError: TF_CONFIG does not have the form above, or has tasks that do not train.
    """
    text = environment.get("TF_CONFIG", "").strip()
    if not text:
        return Task()
    try:
        value = json.loads(text)
    except ValueError as error:
        raise UsageError(f"TF_CONFIG is not JSON: {error}. An example: {_EXAMPLE}") from None
    if value == {}:  # as some platforms set it for a single process
        return Task()
    cluster, kind, index = _parts(value)
    tasks = [(job, number) for job in ("chief", "worker") for number in range(_size(cluster, job))]
    addresses = [address for job in ("chief", "worker") for address in cluster.get(job, [])]
    if (kind, index) not in tasks:
        listed = ", ".join(f"{job} {number}" for job, number in tasks)
        raise UsageError(f"TF_CONFIG: the task {kind} {index} is not in its cluster: {listed}")
    if len(set(addresses)) < len(addresses):
        raise UsageError(f"TF_CONFIG names an address twice: {', '.join(addresses)}")
    rank = tasks.index((kind, index))
    return Task(rank, len(tasks), addresses[rank])


def _parts(value: Any) -> tuple[dict[str, list[str]], str, int]:
    """Returns the cluster, and the type and the index of the task."""
    try:
        cluster, task = value["cluster"], value["task"]
        kind, index = task["type"], int(task["index"])
        jobs = dict(cluster)
    except (KeyError, TypeError, ValueError):
        raise UsageError(
            f"TF_CONFIG needs a cluster and a task with type and index, such as {_EXAMPLE}"
        ) from None
    for job, addresses in jobs.items():
        if job not in ("chief", "worker"):
            raise UsageError(
                f"TF_CONFIG has a task of type {job!r}: expected tasks of type worker, and at most "
                "one of type chief (the chief evaluates; there are no parameter servers)"
            )
        if not isinstance(addresses, list) or not all(
            isinstance(address, str) and _ADDRESS.fullmatch(address) for address in addresses
        ):
            raise UsageError(f"TF_CONFIG: {job} must be a list of HOST:PORT, such as {_EXAMPLE}")
    if _size(jobs, "chief") > 1:
        raise UsageError("TF_CONFIG has several tasks of type chief: expected at most one")
    return jobs, kind, index


def _size(cluster: Mapping[str, list[str]], job: str) -> int:
    return len(cluster.get(job, []))
