"""The Python wheel `milepost-cli`: the program, completions and manual pages, without Python code."""

import base64
import csv
import hashlib
import io
import time
import zipfile
from pathlib import Path

from .contents import Contents
from .program import Program
from .release import SUMMARY, TEMPLATES, repository, time_s, version


def build(program: Program, contents: Contents, output: Path) -> None:
    """Writes the wheel. Its tag contains the oldest glibc that runs the program (PEP 600), so that pip refuses it elsewhere."""
    name = f"milepost_cli-{version()}"
    tag = f"py3-none-manylinux_{program.glibc.replace('.', '_')}_{program.machine}"
    # Installers make scripts executable, and copy data below the prefix of the environment.
    files = {f"{name}.data/scripts/milepost": program.path.read_bytes()}
    files |= {f"{name}.data/data/{path}": data for path, data in contents.shared().items()}
    files |= {f"{name}.dist-info/licenses/{path}": text for path, text in contents.licenses.items()}
    files[f"{name}.dist-info/METADATA"] = metadata(contents).encode()
    files[f"{name}.dist-info/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: scripts/package\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
    record = f"{name}.dist-info/RECORD"
    files[record] = records(files, record)
    with zipfile.ZipFile(output / f"{name}-{tag}.whl", "w", zipfile.ZIP_DEFLATED, compresslevel=6) as wheel:
        for path, data in files.items():
            entry = zipfile.ZipInfo(path, time.gmtime(time_s())[:6])
            entry.external_attr = (0o100755 if path.endswith("scripts/milepost") else 0o100644) << 16
            wheel.writestr(entry, data, zipfile.ZIP_DEFLATED)


def metadata(contents: Contents) -> str:
    """Returns the metadata, with the text that the package index shows."""
    lines = [
        "Metadata-Version: 2.4",
        "Name: milepost-cli",
        f"Version: {version()}",
        f"Summary: {SUMMARY}",
        "License-Expression: MIT OR Apache-2.0",
        *(f"License-File: {name}" for name in contents.licenses),
        "Keywords: jobs,queue,workflow,outbox,postgres",
        "Classifier: Environment :: Console",
        "Classifier: Operating System :: POSIX :: Linux",
        "Classifier: Programming Language :: Rust",
        "Requires-Python: >=3.8",
        "Description-Content-Type: text/markdown",
    ]
    if address := repository():
        lines.append(f"Project-URL: Repository, {address}")
    return "\n".join(lines) + "\n\n" + (TEMPLATES / "README.md").read_text()


def records(files: dict[str, bytes], record: str) -> bytes:
    """Returns the list of all files with their checksums, by which installers check and remove them."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    for path, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        rows.writerow([path, f"sha256={digest}", len(data)])
    rows.writerow([record, "", ""])
    return text.getvalue().encode()
