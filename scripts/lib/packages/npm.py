"""The npm package `@milepost/cli`, and a package with the program for each platform, of which npm installs the one that fits."""

import json
from collections.abc import Sequence
from pathlib import Path

from .archive import write_archive
from .contents import Contents
from .program import MACHINES, Program
from .release import SUMMARY, TEMPLATES, repository, version


def build_platform(program: Program, contents: Contents, output: Path) -> None:
    """Writes the package with the program for one platform."""
    name = platform_package(program.machine)
    manifest = common(name, f"The program of @milepost/cli for Linux on {program.machine}")
    # npm installs an optional dependency only where these match.
    manifest |= {"os": ["linux"], "cpu": [program.names.npm], "libc": ["glibc"], "preferUnplugged": True, "files": ["bin"]}
    readme = f"# {name}\n\nThe program of `@milepost/cli` for Linux on {program.machine}. Install that package.\n"
    pack(output, manifest, {"bin/milepost": program.path.read_bytes(), "README.md": readme.encode()} | contents.licenses, ["bin/milepost"])


def build_command(machines: Sequence[str], contents: Contents, output: Path) -> None:
    """Writes the package that users install: a launcher, completions and manual pages."""
    manifest = common("@milepost/cli", SUMMARY)
    manifest |= {
        "keywords": ["jobs", "queue", "workflow", "outbox", "postgres", "sqlite"],
        "bin": {"milepost": "bin/milepost.js"},
        "man": [f"./share/man/man1/{name}" for name in contents.pages],
        "files": ["bin", "share"],
        "engines": {"node": ">=18"},
        "optionalDependencies": {platform_package(machine): version() for machine in machines},
    }
    files = {"bin/milepost.js": (TEMPLATES / "npm/milepost.js").read_bytes(), "README.md": (TEMPLATES / "README.md").read_bytes()}
    pack(output, manifest, files | contents.shared() | contents.licenses, ["bin/milepost.js"])


def platform_package(machine: str) -> str:
    """Returns the name that the launcher looks for: process.platform and process.arch of Node.js."""
    return f"@milepost/cli-linux-{MACHINES[machine].npm}"


def common(name: str, description: str) -> dict[str, object]:
    """Returns the members that all manifests have."""
    manifest: dict[str, object] = {"name": name, "version": version(), "description": description, "license": "MIT OR Apache-2.0"}
    if address := repository():
        manifest["repository"] = {"type": "git", "url": f"git+{address}.git"}
    # Scoped packages are private by default.
    return manifest | {"publishConfig": {"access": "public"}}


def pack(output: Path, manifest: dict[str, object], files: dict[str, bytes], executable: list[str]) -> None:
    """Writes the archive under the name that `npm pack` gives it."""
    files["package.json"] = json.dumps(manifest, indent=2).encode() + b"\n"
    name = str(manifest["name"]).removeprefix("@").replace("/", "-")
    archive = output / f"{name}-{version()}.tgz"
    write_archive(archive, {f"package/{path}": data for path, data in files.items()}, [f"package/{path}" for path in executable])
