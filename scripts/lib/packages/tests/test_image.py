"""The container image, built with buildah and started with a read-only root file system by its unprivileged user."""

import contextlib
import json
import os
import subprocess
import unittest
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from packages.release import ROOT

from . import support
from .support import PROGRAM, run

SIZE_MAX_MB = 120
IMAGE = f"localhost/milepost-test:{os.getpid()}"
BUILDAH = os.environ | {"STORAGE_DRIVER": "vfs", "BUILDAH_ISOLATION": "chroot"}


class Image(unittest.TestCase):
    root: Path
    """The root file system of the image."""
    config: dict[str, Any]

    @classmethod
    def setUpClass(cls) -> None:
        environment = BUILDAH | {"MILEPOST_TEST_DEBIAN": str(support.debian())}
        run(ROOT / "scripts/image", "--program", PROGRAM, "--tag", IMAGE, env=environment)
        cls.addClassCleanup(run, "buildah", "rmi", "--force", IMAGE, env=BUILDAH)
        container = run("buildah", "from", "--pull-never", IMAGE, env=BUILDAH).strip()
        cls.addClassCleanup(run, "buildah", "rm", container, env=BUILDAH)
        cls.root = Path(run("buildah", "mount", container, env=BUILDAH).strip())
        cls.config = json.loads(run("buildah", "inspect", "--type", "image", IMAGE, env=BUILDAH))["Docker"]["config"]

    def in_container(self, volume: Path, *words: str) -> list[str | Path]:
        """Returns the command that runs another one as the image's user, with a read-only root and a volume for its working folder."""
        script = """set -e; root=$1 volume=$2 user=$3 folder=$4; shift 4
            mount --bind "$root" "$root"; mount --bind "$volume" "$root$folder"; mount -t proc proc "$root/proc"
            mount --rbind /dev "$root/dev"; mount -o remount,bind,ro "$root"; exec setpriv --no-new-privs --bounding-set=-all,+setuid,+setgid,+sys_chroot \
                chroot --userspec="$user" "$root" /bin/env -i "$@" """
        folder = self.config["WorkingDir"]
        inside = ["/bin/sh", "-c", f'cd {folder} && exec "$@"', "sh", *words]
        return ["unshare", "--mount", "sh", "-c", script, "sh", self.root, volume, self.config["User"], folder, *self.config["Env"], *inside]

    def volume(self) -> Path:
        folder = support.new_folder()
        os.chown(folder, 10001, 10001)
        return folder

    @contextlib.contextmanager
    def serving(self, *options: str) -> Iterator[tuple[Path, int]]:
        """Runs the image's command with a volume, and yields the volume and the process."""
        volume = self.volume()
        words = [*self.config["Entrypoint"], *self.config["Cmd"], *options]
        with support.running(*self.in_container(volume, *words)) as process:
            yield volume, process.pid

    def is_healthy(self, volume: Path) -> bool:
        shell, command = self.config["Healthcheck"]["Test"]
        self.assertEqual(shell, "CMD-SHELL")
        return subprocess.run(self.in_container(volume, "/bin/sh", "-c", command), capture_output=True).returncode == 0

    def test_it_serves_from_a_read_only_root_as_an_unprivileged_user(self) -> None:
        with self.serving() as (volume, process):
            support.wait(lambda: support.answers("http://127.0.0.1:7070/readyz") == 200, "the server is ready")
            status = Path(f"/proc/{process}/status").read_text()
            self.assertIn("Uid:\t10001\t10001\t10001\t10001\n", status)
            self.assertIn("CapEff:\t0000000000000000\n", status)
            self.assertTrue((volume / "milepost.db").is_file())
            self.assertTrue(self.is_healthy(volume))
        self.assertFalse(self.is_healthy(volume), "the health check fails if nothing serves")

    def test_it_writes_nothing_outside_its_volume(self) -> None:
        volume = self.volume()
        run(*self.in_container(volume, "/bin/sh", "-c", "echo 1 >file && test -s file"))
        refused = run(*self.in_container(volume, "/bin/sh", "-c", "echo 1 >/usr/bin/new"), status=1)
        self.assertIn("Read-only file system", refused)

    def test_it_runs_programs_of_kinds(self) -> None:
        volume = self.volume()
        script = """set -e; milepost init . ; milepost enqueue hello --payload '{"name": "Ada"}'; milepost work & worker=$!
            while [ "$(milepost jobs list --state succeeded --json)" = '[]' ]; do sleep 0.1; done; kill -TERM $worker; wait $worker"""
        run("timeout", "120", *self.in_container(volume, "/bin/sh", "-c", script))

    def test_it_is_small(self) -> None:
        sizes = run("du", "--summarize", "--bytes", self.root)
        self.assertLess(int(sizes.split()[0]) / 1_000_000, SIZE_MAX_MB)

    def test_it_has_certificate_authorities_for_connections_to_others(self) -> None:
        path = dict(variable.split("=", 1) for variable in self.config["Env"])["SSL_CERT_FILE"]
        self.assertGreater((self.root / path.lstrip("/")).read_text().count("BEGIN CERTIFICATE"), 100)

    def test_no_file_gives_rights_of_another_user(self) -> None:
        self.assertEqual(run("find", self.root, "-type", "f", "-perm", "/6000"), "")
