"""Build the wheel of tls-doctor: its package is the single file, the command and the plugin."""

import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

sys.path.insert(0, str(Path(__file__).resolve().parent))
import single_file


class BuildSingleFile(build_py):
    """Put the single file in the place of the modules that it is made of."""

    def run(self):
        """Copy the sources, and exchange those modules for the file."""
        super().run()
        if self.editable_mode:
            return
        package = Path(self.build_lib, "tls_doctor")
        for name in single_file.MODULES:
            (package / f"{name}.py").unlink()
        (package / "__init__.py").write_text(single_file.build(), encoding="utf-8")


class WheelForTwoAndThree(bdist_wheel):
    """Name the wheel for Python 2.7, too."""

    def get_tag(self):
        """Return the tag of a wheel without compiled code, for both Pythons."""
        return "py2.py3", "none", "any"


setup(cmdclass={"build_py": BuildSingleFile, "bdist_wheel": WheelForTwoAndThree})
