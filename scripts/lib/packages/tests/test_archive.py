"""The archive, the checksums, and the refusals of scripts/package."""

import hashlib
import unittest
from pathlib import Path

from packages.release import ROOT

from . import support
from .support import EMPTY_ENVIRONMENT, package, packages, run


class Archive(unittest.TestCase):
    def test_an_unpacked_archive_runs_jobs(self) -> None:
        folder = support.new_folder()
        run("tar", "-xzf", package("*-x86_64-linux.tar.gz"), "-C", folder, "--strip-components=1")
        support.runs_a_job([folder / "bin/milepost"], EMPTY_ENVIRONMENT)
        support.has_manual_pages(folder / "share/man/man1")
        share = folder / "share"
        support.completes({
            "bash": share / "bash-completion/completions/milepost",
            "zsh": share / "zsh/site-functions/_milepost",
            "fish": share / "fish/vendor_completions.d/milepost.fish",
        })

    def test_the_checksums_are_those_of_all_packages(self) -> None:
        checked = run("sha256sum", "--check", "SHA256SUMS", cwd=packages()).splitlines()
        files = [path for path in packages().iterdir() if path.is_file()]
        self.assertEqual(len(checked), len(files) - 1)
        self.assertTrue(all(line.endswith(": OK") for line in checked), checked)

    def test_the_same_program_gives_the_same_packages(self) -> None:
        small = support.program_for_another_machine()
        again = support.new_folder() / "again"
        run(ROOT / "scripts/package", "--program", support.PROGRAM, "--program", small, again)
        self.assertEqual((again / "SHA256SUMS").read_text(), (packages() / "SHA256SUMS").read_text())

    def test_a_file_that_is_no_program_is_refused(self) -> None:
        refused = run(ROOT / "scripts/package", "--program", ROOT / "README.md", support.new_folder(), status=1)
        self.assertIn("README.md is not a program for x86_64 or aarch64", refused)

    def test_programs_that_cannot_print_their_pages_here_are_refused(self) -> None:
        other = support.program_for_another_machine()
        refused = run(ROOT / "scripts/package", "--program", other, support.new_folder(), status=1)
        self.assertIn("none of the programs runs on x86_64", refused)

    def test_a_program_of_another_version_is_refused(self) -> None:
        program = support.new_folder() / "milepost"
        program.write_bytes(Path("/bin/true").read_bytes())
        program.chmod(0o755)
        refused = run(ROOT / "scripts/package", "--program", program, support.new_folder(), status=1)
        self.assertIn("build the program again", refused)

    def test_the_program_for_images_is_the_packaged_one(self) -> None:
        digest = {hashlib.sha256(path.read_bytes()).hexdigest() for path in [packages() / "programs/amd64/milepost", support.PROGRAM]}
        self.assertEqual(len(digest), 1)
