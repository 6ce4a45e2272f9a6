"""Copies of the project's files, of this working tree or of a commit, in which another version is built."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
LINK = 0o120000


def output(*command):
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout


def working():
    """Yields the files of the working tree: path, contents (of a link, its target), and mode."""
    for path in filter(None, output("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard").decode().split("\0")):
        source = ROOT / path
        if source.is_symlink():
            yield path, str(source.readlink()).encode(), LINK
        elif source.is_file():
            yield path, source.read_bytes(), source.stat().st_mode & 0o777


def committed(revision):
    """Yields the files of a commit, as `working` does."""
    for line in output("git", "ls-tree", "-r", "-z", revision).decode().rstrip("\0").split("\0"):
        about, path = line.split("\t", 1)
        mode, kind, blob = about.split()
        if kind == "blob":
            mode = int(mode, 8)
            yield path, output("git", "cat-file", "blob", blob), LINK if mode == LINK else mode & 0o777


def copy(files, tree):
    """Makes a folder contain exactly these files; those that have not changed keep their time, so that little is compiled again."""
    kept = set()
    for path, contents, mode in files:
        target = tree / path
        kept.add(target)
        if _contents(target) != (contents, mode == LINK):
            target.parent.mkdir(parents=True, exist_ok=True)
            target.unlink(missing_ok=True)
            _write(target, contents, mode)
    for target in tree.rglob("*"):
        if (target.is_symlink() or target.is_file()) and target not in kept:
            target.unlink()
    return tree


def _contents(target):
    if target.is_symlink():
        return str(target.readlink()).encode(), True
    return (target.read_bytes(), False) if target.is_file() else None


def _write(target, contents, mode):
    if mode == LINK:
        target.symlink_to(contents.decode())
    else:
        target.write_bytes(contents)
        target.chmod(mode)
