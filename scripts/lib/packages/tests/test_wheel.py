"""The wheel, installed in empty environments."""

import sys
import unittest
import venv
from pathlib import Path

from . import support
from .support import EMPTY_ENVIRONMENT, package, packages, run


def installed() -> Path:
    """Installs the wheel in an empty virtual environment, without a package index."""
    folder = support.new_folder() / "environment"
    venv.create(folder, with_pip=True)
    run(folder / "bin/pip", "install", "--no-index", "--find-links", packages(), "milepost-cli")
    return folder


class Wheel(unittest.TestCase):
    environment: Path

    @classmethod
    def setUpClass(cls) -> None:
        cls.environment = installed()

    def test_an_installed_wheel_runs_jobs_and_the_demo(self) -> None:
        support.runs_a_job([self.environment / "bin/milepost"], EMPTY_ENVIRONMENT)
        support.passes_the_demo([self.environment / "bin/milepost"], EMPTY_ENVIRONMENT, support.new_folder())

    def test_it_contains_completions_and_manual_pages(self) -> None:
        share = self.environment / "share"
        support.has_manual_pages(share / "man/man1")
        support.completes({
            "bash": share / "bash-completion/completions/milepost",
            "zsh": share / "zsh/site-functions/_milepost",
            "fish": share / "fish/vendor_completions.d/milepost.fish",
        })

    def test_uvx_runs_it_without_an_installation(self) -> None:
        uvx = [Path(sys.executable).with_name("uvx"), "--no-index", "--find-links", packages(), "--from", "milepost-cli"]
        folder = support.new_folder()
        environment = EMPTY_ENVIRONMENT | {"HOME": str(folder), "UV_PYTHON_DOWNLOADS": "never"}
        self.assertEqual(run(*uvx, "milepost", "--version", env=environment).splitlines()[-1], f"milepost {support.VERSION}")

    def test_its_tag_is_the_oldest_glibc_that_has_all_symbols(self) -> None:
        wheel = package("*x86_64.whl")
        shown = run(sys.executable, "-m", "auditwheel", "show", wheel)
        tag = wheel.stem.split("-")[-1]
        self.assertIn(f'is consistent\nwith the following platform tag: "{tag}"', shown.replace("\n\n", "\n"))

    def test_its_metadata_is_accepted_by_the_package_index(self) -> None:
        wheels = sorted(packages().glob("*.whl"))
        self.assertEqual(run(sys.executable, "-m", "twine", "--no-color", "check", "--strict", *wheels).count("PASSED"), 2)

    def test_a_wheel_for_another_machine_is_refused_here(self) -> None:
        environment = support.new_folder() / "environment"
        venv.create(environment, with_pip=True)
        refused = run(environment / "bin/pip", "install", "--no-index", package("*aarch64.whl"), status=1)
        self.assertIn("is not a supported wheel on this platform", refused)
