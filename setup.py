"""What setup.cfg cannot say: the wheel has hparams/ and data/ inside the package."""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildPy(build_py):
    """Copies the files that `tfmann.resources` finds at the top of a checkout."""

    def run(self):
        """Builds the package; an editable one goes on using the checkout's files."""
        super().run()
        if self.editable_mode:
            return
        for folder in ("hparams", "data"):
            for path in sorted(Path(folder).rglob("*.json")):
                target = Path(self.build_lib, "tfmann", "shipped", path)
                self.mkpath(str(target.parent))
                self.copy_file(str(path), str(target))


setup(cmdclass={"build_py": BuildPy})
