"""Settings that TensorFlow reads when it is imported, and shared fixtures."""

import collections
import ctypes
import gc
import os
import sys
import time

import pytest
from hypothesis import settings

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
# Otherwise TensorFlow with oneDNN keeps the pages of every tensor above 256 KB that it has freed.
os.environ.setdefault("TF_ONEDNN_USE_SYSTEM_ALLOCATOR", "1")

# A slow processor is no failure.
settings.register_profile("any processor", deadline=None)
settings.load_profile("any processor")


def pytest_configure(config):
    """Allows the warnings of later packages, which are theirs (setup.cfg: an error otherwise)."""
    if sys.version_info >= (3, 12):
        config.addinivalue_line("filterwarnings", "ignore")


# Names in modules of tests that start processes, each of which takes as much memory as TensorFlow,
# or compile searches, of 100 MB each.
LARGE = {
    "ForkedCommand", "agreements", "cluster", "inspections", "needs_browser", "replicas",
    "run_in_a_process", "signal", "subprocess",
    "Translator", "large_model", "make_translator", "run_beam", "translator",
}  # fmt: skip
SECONDS_BETWEEN_COLLECTIONS = 0.3


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Marks what is thorough, skips what would crash, and orders the files."""
    _mark_thorough(items)
    _skip_bfloat16(items)
    _order_files(items)


def _mark_thorough(items):
    """Marks the parameters that `@pytest.mark.quick` does not name."""
    ids = {}
    for item in items:
        quick = item.get_closest_marker("quick")
        if quick is not None:
            ids.setdefault((item.function, quick.args), set()).add(item.callspec.id)
            if item.callspec.id not in quick.args:
                item.add_marker(pytest.mark.thorough)
    for (function, quick), collected in ids.items():
        unknown = set(quick) - collected
        if unknown and len(collected) > 1:  # not where the command line names a parameter
            raise pytest.UsageError(f"{function.__name__} has no parameters {sorted(unknown)}")


def _order_files(items):
    """Puts files that take much memory first, while the processes of the tests are small.

    Of the others those with many tests come first, so that two processes end at about the same time
    (with `--no-loadscope-reorder`; pytest-xdist would do only this).
    """
    tests = collections.Counter(item.path for item in items)
    items.sort(key=lambda item: (LARGE.isdisjoint(vars(item.module)), -tests[item.path], item.path))


def _skip_bfloat16(items):
    """Skips products in bfloat16 where AVX-512 is hidden from oneDNN, but not from TensorFlow.

    TensorFlow 2.15 looks at the processor, finds AVX-512, and hands oneDNN a product in bfloat16
    for which it has no code then: the process ends in a segmentation fault. A processor without
    AVX-512 takes another way, and passes.
    """
    if os.environ.get("ONEDNN_MAX_CPU_ISA", "ALL") in ("SSE41", "AVX", "AVX2", "AVX2_VNNI"):
        hidden = pytest.mark.skip(reason="ONEDNN_MAX_CPU_ISA is below AVX512_CORE")
        for item in items:
            if "bfloat16" in item.keywords:
                item.add_marker(hidden)


def pytest_collection_finish(session):
    """Spares the tests what costs more than it saves on models of eight units.

    TensorFlow rewrites every graph before its first run (a fifth of the time of a test that runs a
    graph once), and Python looks for circles of garbage whenever it has made 700 objects more (a
    tenth), among the 300,000 of the modules too. `make test-avx2` keeps the rewriting, so that it
    is tested too.
    """
    gc.set_threshold(100_000, 50, 100)
    gc.collect()
    gc.freeze()
    if "tensorflow" in sys.modules and "ONEDNN_MAX_CPU_ISA" not in os.environ:
        import tensorflow as tf

        tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})


@pytest.fixture
def rewritten_graphs():
    """Graphs are rewritten as outside of the tests, which leaves out what nothing reads."""
    import tensorflow as tf

    before = tf.config.optimizer.get_experimental_options().get("disable_meta_optimizer", False)
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": False})
    yield
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": before})


@pytest.fixture
def untraced():
    """Compiled functions run as they are written: slower steps, and no tracing."""
    import tensorflow as tf

    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """The folder of a small model with large random weights."""
    from helpers.command_line import (
        write_model,  # here, so that what needs no model does not load it
    )

    return write_model(tmp_path_factory.mktemp("model"))


@pytest.fixture
def source(tmp_path):
    """A file of lines to translate, as an editor on another system may leave it."""
    from helpers.command_line import write_source

    return write_source(tmp_path / "in")


@pytest.fixture(autouse=True)
def free_graphs():
    """Frees the graphs that a test has traced.

    TensorFlow registers every gradient of `tf.custom_gradient` that is traced under a name of its
    own, for as long as the process lives, and the gradient keeps its whole graph: 30 MB a model.
    """
    yield
    ops = sys.modules.get("tensorflow.python.framework.ops")
    registry = getattr(ops, "gradient_registry", None)
    if registry is None:  # nothing has imported TensorFlow, or a thread is just doing it
        return
    gradients = registry._registry
    for name in [name for name in gradients if name.startswith("CustomGradient-")]:
        del gradients[name]
    if time.monotonic() - _last_collection > SECONDS_BETWEEN_COLLECTIONS:
        _collect()


@pytest.fixture(scope="module", autouse=True)
def free_caches(request):
    """Frees what functions of the test module, of helpers, benchmarks and Keras cached.

    A compiled search takes up to 150 MB. The fixtures of the module are freed, too.
    """
    yield
    packages = ("helpers.", "benchmarks.")
    helpers = [module for name, module in sys.modules.items() if name.startswith(packages)]
    for module in (request.module, *helpers):
        for value in vars(module).values():
            if hasattr(value, "cache_clear"):
                value.cache_clear()
    if "keras.src.backend" in sys.modules or "tf_keras.src.backend" in sys.modules:
        import tensorflow as tf

        tf.keras.backend.clear_session()
    _collect()


_last_collection = 0.0  # of time.monotonic


def _collect():
    """Frees garbage and returns its pages to the system, where the C library can.

    What the modules hold is frozen, so this takes 10 to 40 ms: too much for each of thousands of
    short tests, and little after a long one. What the garbage of many tests was mixed with keeps
    its pages.
    """
    global _last_collection
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
    _last_collection = time.monotonic()
