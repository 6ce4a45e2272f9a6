"""Finished programs: their machine, and the oldest glibc that runs them."""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from .release import PackageError, version


@dataclass(frozen=True)
class Machine:
    """The names of a processor architecture."""

    elf: str
    """As readelf prints it."""
    npm: str
    debian: str


MACHINES = {
    "x86_64": Machine(elf="Advanced Micro Devices X86-64", npm="x64", debian="amd64"),
    "aarch64": Machine(elf="AArch64", npm="arm64", debian="arm64"),
}
"""By the names of Rust, Python and `uname`."""

LIBRARIES = re.compile(r"^(libc|libm|libdl|librt|libpthread|libgcc_s|ld-linux-[a-z0-9_-]+)\.so\.\d+$")
"""Libraries that every Linux with glibc has; wheels may depend on them (PEP 600)."""


@dataclass(frozen=True)
class Program:
    """A file with the program for one machine."""

    path: Path
    machine: str
    """A key of MACHINES."""
    glibc: str
    """The oldest version of glibc that has all symbols that the program needs, such as 2.28."""

    @classmethod
    def read(cls, path: Path) -> Self:
        """Reads the headers of a program. Fails if it is for another kind of machine, or needs libraries that are not on every Linux."""
        if not path.is_file():
            raise PackageError(f"{path}: no such file")
        elf = re.search(r"Machine:\s+(.*)", readelf("--file-header", path))
        machine = next((name for name, names in MACHINES.items() if elf and names.elf == elf[1]), None)
        if machine is None:
            raise PackageError(f"{path} is not a program for {' or '.join(MACHINES)}")
        needed = re.findall(r"\(NEEDED\).*\[(.*)\]", readelf("--dynamic", path))
        if foreign := [library for library in needed if not LIBRARIES.match(library)]:
            raise PackageError(f"{path} needs {', '.join(foreign)}, which not every Linux has; link it statically")
        versions = re.findall(r"GLIBC_(\d+)\.(\d+)", readelf("--version-info", path))
        if not versions:
            raise PackageError(f"{path} does not use glibc; packages are for programs that do")
        major, minor = max((int(major), int(minor)) for major, minor in versions)
        return cls(path, machine, f"{major}.{minor}")

    @property
    def names(self) -> Machine:
        """The names of its machine."""
        return MACHINES[self.machine]

    def prints(self, *arguments: str) -> str:
        """Returns the output of the program. Fails if it cannot run on this machine."""
        return subprocess.run([self.path.resolve(), *arguments], check=True, capture_output=True, text=True).stdout

    def check_version(self) -> None:
        """Fails if this is not a program of this release."""
        if (printed := self.prints("--version").strip()) != f"milepost {version()}":
            raise PackageError(f"{self.path} is {printed}, but Cargo.toml has version {version()}; build the program again")


def readelf(section: str, path: Path) -> str:
    """Returns what readelf prints. It reads programs for every machine."""
    ran = subprocess.run(["readelf", "--wide", section, path], capture_output=True, text=True, env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"})
    return ran.stdout
