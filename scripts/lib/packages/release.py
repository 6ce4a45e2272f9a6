"""Facts of the release that all packages share, and its checksums."""

import functools
import hashlib
import os
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
"""The repository."""
TEMPLATES = ROOT / "ops/packages"
LICENSES = ["LICENSE-APACHE", "LICENSE-MIT"]
SUMMARY = "Durable jobs, bulk jobs, batches and events on SQLite or PostgreSQL"


class PackageError(Exception):
    """A package cannot be built; the message contains the remedy."""


@functools.cache
def version() -> str:
    """Returns the version of the workspace."""
    return tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]


@functools.cache
def repository() -> str | None:
    """Returns the public address of the project, if `repository` is set in Cargo.toml."""
    return tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"].get("repository")


@functools.cache
def time_s() -> int:
    """Returns the time of all files in packages, in Unix seconds: SOURCE_DATE_EPOCH, else the time of the commit."""
    if given := os.environ.get("SOURCE_DATE_EPOCH"):
        return int(given)
    git = ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"]
    return int(subprocess.run(git, check=True, capture_output=True, text=True).stdout)


def write_checksums(output: Path) -> Iterator[str]:
    """Writes SHA256SUMS for all files directly in the folder, and yields its lines."""
    files = sorted(path for path in output.iterdir() if path.is_file())
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}" for path in files]
    (output / "SHA256SUMS").write_text("".join(f"{line}\n" for line in lines))
    yield from lines
