"""Packs hparams/ and data/ inside the package, which setup.cfg cannot express."""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildPy(build_py):
    """Copies the files that `tfmann.utils.resources` finds at the top of a checkout."""

    def run(self):
        """Builds the package; an editable one still uses the checkout's files."""
        super().run()
        if not self.editable_mode:
            for target, source in self._shipped().items():
                self.mkpath(str(Path(target).parent))
                self.copy_file(source, target)

    def get_outputs(self, include_bytecode=True):
        """Returns all files of the package."""
        return [*super().get_outputs(include_bytecode), *self._shipped()]

    def get_output_mapping(self):
        """Where each comes from: an editable installation in strict mode makes links of it."""
        return {**super().get_output_mapping(), **self._shipped()}

    def _shipped(self):
        files = [path for folder in ("hparams", "data") for path in Path(folder).rglob("*.json")]
        return {str(Path(self.build_lib, "tfmann", "shipped", path)): str(path) for path in files}


setup(cmdclass={"build_py": BuildPy})
