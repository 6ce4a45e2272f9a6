"""The Debian package, installed with dpkg in a minimal Debian."""

import os
import shlex
import unittest
from pathlib import Path

from . import support
from .support import package, run


class Root:
    """A copy of a minimal Debian."""

    def __init__(self) -> None:
        self.path = support.new_folder() / "debian"
        run("cp", "-a", "--reflink=auto", support.debian(), self.path)

    def command(self, *words: str) -> list[str | Path]:
        return ["unshare", "--mount", f"--mount-proc={self.path}/proc", "chroot", self.path, *words]

    def run(self, *words: str, status: int = 0) -> str:
        return run(*self.command(*words), status=status, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"})


def installed() -> Root:
    root = Root()
    run("cp", package("*_amd64.deb"), root.path / "tmp/milepost.deb")
    root.run("dpkg", "--install", "/tmp/milepost.deb")
    return root


class Debian(unittest.TestCase):
    root: Root

    @classmethod
    def setUpClass(cls) -> None:
        cls.root = installed()

    def test_the_installed_command_runs_jobs(self) -> None:
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
        self.assertEqual(self.root.run("milepost", "--version"), f"milepost {support.VERSION}\n")
        script = """set -e; cd "$(mktemp -d)"; milepost init .; milepost enqueue hello --payload '{"name": "Ada"}'
            milepost work & while [ "$(milepost jobs list --state succeeded --json)" = '[]' ]; do sleep 0.1; done; kill -TERM $!; wait $!"""
        run("timeout", "120", *self.root.command("bash", "-c", script), env=environment)

    def test_the_service_answers_as_its_account_with_the_installed_configuration(self) -> None:
        unit = (self.root.path / "lib/systemd/system/milepost.service").read_text()
        settings = dict(line.split("=", 1) for line in unit.splitlines() if "=" in line)
        self.assertEqual(settings["User"], "milepost")
        port = support.free_port()
        variables = shlex.split((self.root.path / "etc/milepost/environment").read_text(), comments=True) + settings["Environment"].split()
        account = ["setpriv", f"--reuid={settings['User']}", f"--regid={settings['Group']}", "--init-groups", "env", "-C", settings["WorkingDirectory"], *variables, f"MILEPOST_LISTEN=127.0.0.1:{port}"]
        with support.running(*self.root.command(*account, *settings["ExecStart"].split()), env=os.environ | {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}):
            support.wait(lambda: support.answers(f"http://127.0.0.1:{port}/readyz") == 200, "the service is ready")
        store = self.root.path / "var/lib/milepost/milepost.db"
        self.assertTrue(store.is_file())

    def test_systemd_accepts_the_unit(self) -> None:
        unit = support.new_folder() / "milepost.service"
        text = (self.root.path / "lib/systemd/system/milepost.service").read_text()
        unit.write_text(text.replace("ExecStart=/usr", f"ExecStart={self.root.path}/usr"))
        self.assertEqual(run("systemd-analyze", "verify", unit), "")

    def test_secrets_are_readable_by_the_account_only(self) -> None:
        shown = self.root.run("stat", "--format=%U %G %a", "/etc/milepost/environment", "/var/lib/milepost")
        self.assertEqual(shown.splitlines(), ["root milepost 640", "milepost milepost 750"])

    def test_it_contains_completions_and_manual_pages(self) -> None:
        share = self.root.path / "usr/share"
        support.has_manual_pages(share / "man/man1", ".gz")
        support.completes({
            "bash": share / "bash-completion/completions/milepost",
            "zsh": share / "zsh/vendor-completions/_milepost",
            "fish": share / "fish/vendor_completions.d/milepost.fish",
        })

    def test_a_purge_keeps_the_jobs_and_removes_everything_else(self) -> None:
        root = installed()
        (root.path / "var/lib/milepost/milepost.db").write_text("the jobs")
        root.run("dpkg", "--purge", "milepost")
        self.assertTrue((root.path / "var/lib/milepost/milepost.db").exists())
        remaining = root.run("find", "/usr", "/etc", "/lib/systemd", "-name", "*milepost*").split()
        self.assertEqual(remaining, [])

    def test_an_upgrade_keeps_a_changed_configuration(self) -> None:
        root = installed()
        (root.path / "etc/milepost/milepost.toml").write_text("# changed\n")
        root.run("dpkg", "--install", "/tmp/milepost.deb")
        self.assertEqual((root.path / "etc/milepost/milepost.toml").read_text(), "# changed\n")

    def test_lintian_finds_no_fault(self) -> None:
        self.assertEqual(run("lintian", "--allow-root", "--fail-on=error,warning", package("*_amd64.deb")), "")

    def test_the_package_for_another_machine_is_for_that_machine(self) -> None:
        self.assertEqual(run("dpkg-deb", "--field", package("*_arm64.deb"), "Architecture"), "arm64\n")
