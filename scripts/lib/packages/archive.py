"""Archives that are unpacked into a prefix such as /usr/local, and writing of reproducible archives."""

import gzip
import io
import shutil
import tarfile
from pathlib import Path

from .contents import Contents
from .program import Program
from .release import ROOT, time_s, version


def build(program: Program, contents: Contents, output: Path) -> None:
    """Writes milepost-VERSION-TARGET-linux.tar.gz."""
    name = f"milepost-{version()}-{program.machine}-linux"
    files = {"bin/milepost": program.path.read_bytes()} | contents.shared()
    files |= {f"share/doc/milepost/{file}": text for file, text in contents.licenses.items()}
    files["share/doc/milepost/milepost.service"] = (ROOT / "ops/systemd/milepost.service").read_bytes()
    files["share/doc/milepost/README.md"] = (ROOT / "README.md").read_bytes()
    write_archive(output / f"{name}.tar.gz", {f"{name}/{path}": data for path, data in files.items()}, [f"{name}/bin/milepost"])


def keep_program(program: Program, _contents: Contents, output: Path) -> None:
    """Copies the program to programs/ARCHITECTURE/milepost, where scripts/image and builds of images find it."""
    folder = output / "programs" / program.names.debian
    folder.mkdir(parents=True)
    shutil.copyfile(program.path, folder / "milepost")
    (folder / "milepost").chmod(0o755)


def write_archive(path: Path, files: dict[str, bytes], executable: list[str]) -> None:
    """Writes a compressed tar archive, whose files belong to root and have the time of the release."""
    with path.open("wb") as file, gzip.GzipFile("", "wb", 6, file, mtime=time_s()) as packed, tarfile.open(mode="w", fileobj=packed) as tar:
        for name, data in sorted(files.items()):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime = len(data), time_s()
            entry.mode = 0o755 if name in executable else 0o644
            entry.uname = entry.gname = "root"
            tar.addfile(entry, io.BytesIO(data))
