"""The Debian package: the program, the systemd unit, an account, a configuration, completions and manual pages."""

import email.utils
import gzip
import os
import subprocess
import tempfile
from pathlib import Path

from .contents import COMPLETIONS, Contents
from .program import Program
from .release import ROOT, SUMMARY, TEMPLATES, PackageError, time_s, version

CONFIGURATION = ["etc/milepost/milepost.toml", "etc/milepost/environment"]
"""Files that an upgrade does not replace if they were changed."""


def build(program: Program, contents: Contents, output: Path) -> None:
    """Writes milepost_VERSION_ARCHITECTURE.deb."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "root"
        files = installed_files(program, contents)
        for path, data in files.items():
            write(root / path, data)
        (root / "usr/bin/milepost").chmod(0o755)
        # Contains the password of the database.
        (root / "etc/milepost/environment").chmod(0o640)
        size_kib = sum(len(data) + 1023 for data in files.values()) // 1024
        write(root / "DEBIAN/control", control(program, size_kib).encode())
        write(root / "DEBIAN/conffiles", "".join(f"/{path}\n" for path in CONFIGURATION).encode())
        for script in ["postinst", "prerm", "postrm"]:
            write(root / "DEBIAN" / script, (TEMPLATES / "deb" / script).read_bytes())
            (root / "DEBIAN" / script).chmod(0o755)
        file = output / f"milepost_{version()}_{program.names.debian}.deb"
        # A higher level of xz takes five times as long, for a tenth of the size.
        command = ["dpkg-deb", "--root-owner-group", "-Zxz", "-z2", "--build", str(root), str(file)]
        ran = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"SOURCE_DATE_EPOCH": str(time_s())})
        if ran.returncode != 0:
            raise PackageError(f"dpkg-deb: {ran.stderr.strip()}")


def installed_files(program: Program, contents: Contents) -> dict[str, bytes]:
    """Returns the files by their paths on the machine."""
    documents = "usr/share/doc/milepost"
    return {
        "usr/bin/milepost": program.path.read_bytes(),
        "lib/systemd/system/milepost.service": unit().encode(),
        "etc/milepost/milepost.toml": (TEMPLATES / "deb/milepost.toml").read_bytes(),
        "etc/milepost/environment": (TEMPLATES / "deb/environment").read_bytes(),
        f"{documents}/copyright": copyright_file(contents).encode(),
        "usr/share/lintian/overrides/milepost": (TEMPLATES / "deb/lintian-overrides").read_bytes(),
        f"{documents}/changelog.gz": compressed(changelog().encode()),
        f"usr/{COMPLETIONS['bash']}": contents.completions[COMPLETIONS["bash"]],
        "usr/share/zsh/vendor-completions/_milepost": contents.completions[COMPLETIONS["zsh"]],
        f"usr/{COMPLETIONS['fish']}": contents.completions[COMPLETIONS["fish"]],
    } | {f"usr/share/man/man1/{name}.gz": compressed(page) for name, page in contents.pages.items()}


def unit() -> str:
    """Returns ops/systemd/milepost.service for the package, which installs into /usr and has a permanent account."""
    text = (ROOT / "ops/systemd/milepost.service").read_text()
    changes = {
        "/usr/local/bin/milepost serve": "/usr/bin/milepost serve",
        "DynamicUser=yes": "User=milepost\nGroup=milepost\nStateDirectoryMode=0750\nRemoveIPC=yes",
    }
    for before, after in changes.items():
        if before not in text:
            raise PackageError(f"ops/systemd/milepost.service does not contain {before!r}; adapt scripts/lib/packages/deb.py")
        text = text.replace(before, after)
    _, _, sections = text.partition("[Unit]")
    return "# Settings are in /etc/milepost; change this unit with: systemctl edit milepost\n\n[Unit]" + sections


def control(program: Program, size_kib: int) -> str:
    """Returns the metadata of the package."""
    text = (TEMPLATES / "deb/control").read_text()
    return text.format(version=version(), architecture=program.names.debian, size_kib=size_kib, glibc=program.glibc, summary=SUMMARY)


def changelog() -> str:
    """Returns the entry of this version, in Debian's format."""
    date = email.utils.formatdate(time_s())
    maintainer = (TEMPLATES / "deb/control").read_text().split("Maintainer: ")[1].splitlines()[0]
    return f"milepost ({version()}) stable; urgency=medium\n\n  * Release {version()}.\n\n -- {maintainer}  {date}\n"


def copyright_file(contents: Contents) -> str:
    """Returns the licences in Debian's format, with the text of those that Debian does not have."""
    lines = contents.licenses["LICENSE-MIT"].decode().split("\n\n", 2)[2].splitlines()
    return (TEMPLATES / "deb/copyright").read_text() + "".join(f" {line or '.'}\n" for line in lines)


def compressed(data: bytes) -> bytes:
    return gzip.compress(data, 9, mtime=0)


def write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    path.chmod(0o644)
