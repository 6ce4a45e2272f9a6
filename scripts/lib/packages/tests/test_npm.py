"""The npm packages, installed from a registry that has only them."""

import base64
import contextlib
import hashlib
import http.server
import json
import tarfile
import threading
import unittest
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

from . import support
from .support import EMPTY_ENVIRONMENT, packages, run


class Registry(http.server.BaseHTTPRequestHandler):
    """Answers requests for a package's manifest and for its archive."""

    def do_GET(self) -> None:
        name = urllib.parse.unquote(self.path).removeprefix("/")
        host = f"http://{self.headers['Host']}"
        if name.endswith(".tgz") and (packages() / Path(name).name).is_file():
            self.answer(200, (packages() / Path(name).name).read_bytes())
        elif archive := self.archives().get(name):
            self.answer(200, json.dumps(described(archive, host)).encode())
        else:
            self.answer(404, b"{}")

    def archives(self) -> dict[str, Path]:
        return {str(manifest(path)["name"]): path for path in packages().glob("*.tgz")}

    def answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


def manifest(archive: Path) -> dict[str, object]:
    with tarfile.open(archive) as files:
        file = files.extractfile("package/package.json")
        assert file is not None
        return json.load(file)  # type: ignore[no-any-return]


def described(archive: Path, host: str) -> dict[str, object]:
    """Returns what a registry answers for a package with one version."""
    its = manifest(archive)
    digest = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
    its["dist"] = {"tarball": f"{host}/{archive.name}", "integrity": f"sha512-{digest}"}
    return {"name": its["name"], "dist-tags": {"latest": its["version"]}, "versions": {its["version"]: its}}


@contextlib.contextmanager
def registry() -> Iterator[dict[str, str]]:
    """Serves the packages, and yields the environment in which npm uses this registry and an empty cache."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Registry) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        settings = {"registry": f"http://127.0.0.1:{server.server_port}", "audit": "false", "fund": "false", "update_notifier": "false"}
        variables = {f"npm_config_{name}": value for name, value in settings.items()}
        yield EMPTY_ENVIRONMENT | variables | {"HOME": str(support.new_folder())}
        server.shutdown()
        thread.join()


class Npm(unittest.TestCase):
    environment: dict[str, str]
    folder: Path
    """An empty folder in which the package was installed."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.environment = cls.enterClassContext(registry())
        cls.folder = support.new_folder()
        run("npm", "install", "@milepost/cli", cwd=cls.folder, env=cls.environment)

    def test_npm_installs_the_program_of_this_platform_only(self) -> None:
        installed = {path.name for path in (self.folder / "node_modules/@milepost").iterdir()}
        self.assertEqual(installed, {"cli", "cli-linux-x64"})

    def test_an_installed_package_runs_jobs(self) -> None:
        support.runs_a_job([self.folder / "node_modules/.bin/milepost"], self.environment)

    def test_npx_runs_the_demo_without_an_installation(self) -> None:
        support.passes_the_demo(["npx", "--yes", "@milepost/cli"], self.environment, support.new_folder())

    def test_a_global_installation_has_completions_and_manual_pages(self) -> None:
        prefix = support.new_folder()
        run("npm", "install", "--global", "--prefix", prefix, "@milepost/cli", env=self.environment)
        support.has_manual_pages(prefix / "share/man/man1")
        share = prefix / "lib/node_modules/@milepost/cli/share"
        support.completes({
            "bash": share / "bash-completion/completions/milepost",
            "zsh": share / "zsh/site-functions/_milepost",
            "fish": share / "fish/vendor_completions.d/milepost.fish",
        })

    def test_the_exit_status_is_that_of_the_program(self) -> None:
        run(self.folder / "node_modules/.bin/milepost", "no-such-command", env=self.environment, status=2)

    def test_a_missing_program_is_explained(self) -> None:
        folder = support.new_folder()
        run("npm", "install", "--omit=optional", "@milepost/cli", cwd=folder, env=self.environment)
        printed = run(folder / "node_modules/.bin/milepost", "--version", env=self.environment, status=1)
        self.assertIn("Install again without --omit=optional", printed)
