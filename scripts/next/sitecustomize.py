"""Lets tensorflow-addons be imported beside TensorFlow 2.16 and later, with Keras 2 (tf-keras).

Python runs this at every start where its folder is on PYTHONPATH. tensorflow-addons imports parts
of `keras` that Keras 3 no longer has; tf-keras, the Keras 2 that TensorFlow itself uses under
TF_USE_LEGACY_KERAS, has them under another name.
"""

import importlib
import importlib.abc
import importlib.util
import os
import sys

os.environ["TF_USE_LEGACY_KERAS"] = "1"


class _Alias(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds `keras` and what is below it as `tf_keras`."""

    def find_spec(self, name, path=None, target=None):
        if name != "keras" and not name.startswith("keras."):
            return None
        return importlib.util.spec_from_loader(name, self)

    def create_module(self, spec):
        module = importlib.import_module("tf_" + spec.name)
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module):
        """It has been run, under its own name, which it keeps."""
        module.__spec__ = module.__spec__.loader_state


sys.meta_path.insert(0, _Alias())


class _NumpyNames(importlib.abc.MetaPathFinder):
    """Gives NumPy 2 back the name that tensorflow-addons uses, when it is imported."""

    def find_spec(self, name, path=None, target=None):
        if name.startswith("tensorflow_addons"):
            import numpy

            if not hasattr(numpy, "Inf"):
                numpy.Inf = numpy.inf
        return None


sys.meta_path.insert(0, _NumpyNames())
