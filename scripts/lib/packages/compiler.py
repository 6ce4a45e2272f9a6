"""Compiles the program for a target, linked against an old glibc."""

import os
import subprocess
import venv
from pathlib import Path

from .program import Program
from .release import ROOT, PackageError

GLIBC = "2.28"
"""Debian 10, RHEL 8, Ubuntu 18.10 and later; the oldest that Node.js and the wheels of most projects support, too."""
TOOLS = ["cargo-zigbuild==0.24.1", "ziglang==0.17.1"]


def compiled(target: str) -> Program:
    """Compiles the program with the profile `dist` and returns it."""
    triple = f"{target}-unknown-linux-gnu"
    require_standard_library(triple)
    tools = installed_tools()
    build = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    command = ["cargo", "zigbuild", "--profile", "dist", "--locked", "-p", "milepost-cli", "--target", f"{triple}.{GLIBC}"]
    if subprocess.run(command, cwd=ROOT, env=environment(tools, target)).returncode != 0:
        raise PackageError(f"the program could not be compiled for {target}; see above")
    program = Program.read(build / triple / "dist/milepost")
    if tuple(map(int, program.glibc.split("."))) > tuple(map(int, GLIBC.split("."))):
        raise PackageError(f"{program.path} needs glibc {program.glibc}, although it was linked against {GLIBC}")
    return program


def require_standard_library(triple: str) -> None:
    """Fails if Rust's standard library for the target is not installed."""
    printed = subprocess.run(["rustc", "--print", "target-libdir", "--target", triple], check=True, capture_output=True, text=True)
    if not Path(printed.stdout.strip()).is_dir():
        raise PackageError(f"Rust's standard library for {triple} is missing; install it: rustup target add {triple}")


def installed_tools() -> Path:
    """Returns the programs of a virtual environment with cargo-zigbuild and Zig, which is made once."""
    folder = ROOT / "target/test-tools" / "-".join(["zig", *(tool.partition("==")[2] for tool in TOOLS)])
    programs = folder / "bin"
    if not (programs / "cargo-zigbuild").exists():
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([programs / "python", "-m", "pip", "install", "--quiet", *TOOLS], check=True)
    return programs


def environment(tools: Path, target: str) -> dict[str, str]:
    """Returns the variables for the build. cargo-zigbuild sets the compilers that crates use, but not those of librdkafka's `configure`, which reads CC."""
    # librdkafka also links a shared library, which is not used, with a list of symbols some of which do not exist.
    variables = {"LDFLAGS": "-Wl,--undefined-version", "HOST_CC": "cc", "HOST_CXX": "c++", "HOST_AR": "ar", "PATH": f"{tools}:{os.environ['PATH']}"}
    for name, language in [("CC", "cc"), ("CXX", "c++")]:
        compiler = tools / f"zig-{language}-{target}"
        compiler.write_text(f'#!/bin/sh\nexec "{tools}/python" -m ziglang {language} -target {target}-linux-gnu.{GLIBC} "$@"\n')
        compiler.chmod(0o755)
        variables[name] = str(compiler)
    return os.environ | variables
