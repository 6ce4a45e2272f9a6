"""Installation of the systems from their registries into bench/.work."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from .systems import System

ROOT = Path(__file__).resolve().parents[2]
RIVALS = ROOT / "bench" / "rivals"


class NotMeasured(Exception):
    """A reason why a system or a figure is not measured."""


def run(command: list, **options: object) -> None:
    """Runs an installation step; fails with the end of its output."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL, **options)
    if done.returncode:
        end = " ".join(done.stdout.strip().splitlines()[-3:])[-300:]
        raise NotMeasured(f"`{' '.join(str(part) for part in command[:4])} …` failed: {end}")


def need(program: str) -> str:
    found = shutil.which(program)
    if not found:
        raise NotMeasured(f"the program {program} is missing")
    return found


def unchanged(stamp: Path, text: str) -> bool:
    return stamp.exists() and stamp.read_text(encoding="utf-8") == text


def install_python(folder: Path, rival: Path) -> None:
    """Creates a virtual environment with the pinned packages."""
    wanted = (rival / "requirements.txt").read_text(encoding="utf-8")
    stamp = folder / "venv" / "installed"
    if not unchanged(stamp, wanted):
        shutil.rmtree(folder / "venv", ignore_errors=True)
        run([sys.executable, "-m", "venv", str(folder / "venv")])
        run([str(folder / "venv/bin/pip"), "install", "--quiet", "--disable-pip-version-check", "-r", str(rival / "requirements.txt")])
        stamp.write_text(wanted, encoding="utf-8")


def install_node(folder: Path, rival: Path) -> None:
    """Installs the locked packages beside a copy of the program, because Node.js looks for packages beside the program."""
    wanted = (rival / "package-lock.json").read_text(encoding="utf-8")
    shutil.copytree(rival, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("node_modules"))
    # The shared module imports the driver, so it is copied to the same folder.
    shutil.copy(RIVALS / "protocol.mjs", folder / "protocol.mjs")
    program = (folder / "worker.mjs").read_text(encoding="utf-8")
    (folder / "worker.mjs").write_text(program.replace('"../protocol.mjs"', '"./protocol.mjs"'), encoding="utf-8")
    stamp = folder / "installed"
    if not unchanged(stamp, wanted):
        run([need("npm"), "ci", "--silent", "--no-audit", "--no-fund"], cwd=folder)
        stamp.write_text(wanted, encoding="utf-8")


def install_rust(work: Path, rival: Path) -> Path:
    """Builds the program for Milepost, unless BENCH_MILEPOST_PROGRAM names it; returns its path."""
    given = os.environ.get("BENCH_MILEPOST_PROGRAM")
    if given:
        return Path(given)
    target = work / "target"
    run([need("cargo"), "build", "--quiet", "--locked", "--release", "--manifest-path", str(rival / "Cargo.toml")],
        env={**os.environ, "CARGO_TARGET_DIR": str(target)})
    return target / "release" / "milepost-rival"


def install_riverqueue(folder: Path, version: str) -> Path:
    """Installs River, unless BENCH_RIVERQUEUE names its program; returns its path."""
    given = os.environ.get("BENCH_RIVERQUEUE")
    if given:
        return Path(given)
    program = folder / "bin" / "riverqueue"
    if not program.exists():
        run([need("cargo"), "install", "--quiet", "--locked", "--root", str(folder), "--version", version, "riverqueue-cli"])
    return program


def build_milepost(given: str | None) -> Path:
    """Returns the path of the binary that is measured."""
    if given:
        return Path(given).resolve()
    run([need("cargo"), "build", "--quiet", "--locked", "--profile", "dist", "-p", "milepost-cli"], cwd=ROOT)
    return Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "dist" / "milepost"


def program_of(system: System, work: Path) -> list:
    """Installs a system; returns the command of its program in the common protocol, or [] if it has none."""
    folder, rival = work / system.folder, RIVALS / system.folder
    folder.mkdir(parents=True, exist_ok=True)
    if (rival / "requirements.txt").exists():
        install_python(folder, rival)
    if system.runtime == "python":
        return [str(folder / "venv/bin/python"), str(rival / "worker.py")]
    if system.runtime == "node":
        install_node(folder, rival)
        return [need("node"), str(folder / "worker.mjs")]
    if system.runtime == "rust":
        return [str(install_rust(work, rival))]
    return []
