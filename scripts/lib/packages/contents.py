"""Files that every package contains besides the program: completions, manual pages, licences."""

import platform
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .program import Program
from .release import LICENSES, ROOT, PackageError

COMPLETIONS = {
    "bash": "share/bash-completion/completions/milepost",
    "zsh": "share/zsh/site-functions/_milepost",
    "fish": "share/fish/vendor_completions.d/milepost.fish",
}
"""Where each shell looks for completions, below the prefix of an installation."""


@dataclass(frozen=True)
class Contents:
    """Files that are the same in all packages."""

    completions: dict[str, bytes]
    """By path below the prefix, such as share/zsh/site-functions/_milepost."""
    pages: dict[str, bytes]
    """Manual pages by file name, such as milepost-work.1."""
    licenses: dict[str, bytes]

    @classmethod
    def collect(cls, programs: Sequence[Program]) -> "Contents":
        """Lets the program that runs on this machine print its completions and manual pages."""
        runs = next((program for program in programs if program.machine == platform.machine()), None)
        if runs is None:
            raise PackageError(f"none of the programs runs on {platform.machine()}: add one, which prints the manual pages of all packages")
        runs.check_version()
        completions = {path: runs.prints("completions", shell).encode() for shell, path in COMPLETIONS.items()}
        with tempfile.TemporaryDirectory() as folder:
            runs.prints("man", "--folder", folder)
            pages = {page.name: page.read_bytes() for page in sorted(Path(folder).iterdir())}
        return cls(completions, pages, {name: (ROOT / name).read_bytes() for name in LICENSES})

    def shared(self) -> dict[str, bytes]:
        """Returns completions and manual pages by their paths below the prefix of an installation."""
        return self.completions | {f"share/man/man1/{name}": page for name, page in self.pages.items()}
