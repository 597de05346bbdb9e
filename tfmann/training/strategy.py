"""The devices that train one model: of this process, or of all workers in TF_CONFIG."""

from __future__ import annotations

import functools

import tensorflow as tf

from tfmann.config import RunSettings
from tfmann.errors import UserError
from tfmann.training import tf_config
from tfmann.training.worker_sync import WorkerLost, Workers
from tfmann.utils import processor


def join(hparams: RunSettings) -> Workers:
    """Makes the strategy of the setting `distribution`, together with the other workers, if any.

    `none` takes each machine's default device, `mirrored` all its GPUs, or all logical CPU devices
    of a single machine without a GPU. With several workers it returns when all have joined.

    Raises:
      UsageError: TF_CONFIG is invalid.
      UserError: this worker cannot listen at its address.
      WorkerLost: the others did not join.
    """
    task = tf_config.read_task()
    if task.size > 1:
        return Workers(_multi_worker(hparams.distribution, task), task)
    if hparams.distribution == "none":
        return Workers(tf.distribute.get_strategy())
    return Workers(_mirrored())


def precision_advice(precision: str) -> str:
    """Returns what to say if the processor trains faster in another precision; else nothing."""
    if precision != "mixed_bfloat16" or tf.config.list_physical_devices("GPU"):
        return ""
    if processor.multiplies_bfloat16() is not False:
        return ""
    return "this processor does not multiply in bfloat16: --precision=float32 may be faster"


@functools.cache
def _mirrored() -> tf.distribute.Strategy:
    """Makes one strategy for the whole process: TensorFlow would confuse the sums of two."""
    kind = "GPU" if tf.config.list_physical_devices("GPU") else "CPU"
    devices = [device.name for device in tf.config.list_logical_devices(kind)]
    return tf.distribute.MirroredStrategy(devices)


@functools.cache
def _multi_worker(distribution: str, task: tf_config.Task) -> tf.distribute.Strategy:
    """Makes one strategy for the whole process, which listens at one address."""
    if distribution == "none":
        tf.config.set_visible_devices(tf.config.list_physical_devices("GPU")[:1], "GPU")
    try:
        return tf.distribute.MultiWorkerMirroredStrategy()
    except tf.errors.UnknownError:
        raise UserError(
            f"worker {task.rank} cannot listen at {task.address}, its address in TF_CONFIG: "
            "the port is taken, or the address is another machine's"
        ) from None
    except tf.errors.OpError as error:
        raise WorkerLost(
            f"worker {task.rank} of {task.size} has not found the others of TF_CONFIG: "
            f"{str(error).splitlines()[0]}"
        ) from None
