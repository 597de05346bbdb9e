"""The devices that train one model: of this process, or of all processes that TF_CONFIG names."""

from __future__ import annotations

import functools

import tensorflow as tf

from tfmann.errors import UserError
from tfmann.hparams import HParams
from tfmann.training import tf_config
from tfmann.training.workers import WorkerLost, Workers


def join(hparams: HParams) -> Workers:
    """Makes the strategy that `distribution` asks for, with the other workers if there are any.

    Of every machine, `none` takes the default device and `mirrored` all GPUs; of a single one
    without a GPU, all logical CPU devices. With several workers it returns when all have come.

    Raises:
      UsageError: TF_CONFIG is not as it should be.
      UserError: this worker cannot listen at its address.
      WorkerLost: the others did not come.
    """
    place = tf_config.place()
    if place.size > 1:
        return Workers(_of_all(hparams.distribution, place), place)
    if hparams.distribution == "none":
        return Workers(tf.distribute.get_strategy())
    return Workers(_mirrored())


@functools.cache
def _mirrored() -> tf.distribute.Strategy:
    """One for the whole process: two would number their sums alike, and TensorFlow mix them up."""
    kind = "GPU" if tf.config.list_physical_devices("GPU") else "CPU"
    devices = [device.name for device in tf.config.list_logical_devices(kind)]
    return tf.distribute.MirroredStrategy(devices)


@functools.cache
def _of_all(distribution: str, place: tf_config.Place) -> tf.distribute.Strategy:
    """One for the whole process, which listens at one address."""
    if distribution == "none":
        tf.config.set_visible_devices(tf.config.list_physical_devices("GPU")[:1], "GPU")
    try:
        return tf.distribute.MultiWorkerMirroredStrategy()
    except tf.errors.UnknownError:
        raise UserError(
            f"worker {place.rank} cannot listen at {place.address}, its address in TF_CONFIG: "
            "the port is taken, or the address is another machine's"
        ) from None
    except tf.errors.OpError as error:
        raise WorkerLost(
            f"worker {place.rank} of {place.size} has not found the others of TF_CONFIG: "
            f"{str(error).splitlines()[0]}"
        ) from None
