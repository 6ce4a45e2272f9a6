"""Walks docs/tutorials/django.md block by block, as crates/cli/tests/integration/tutorials.rs does, with the package installed from its wheel in an
empty virtual environment. Needs a package index, `psql`, the server of MILEPOST_TEST_POSTGRES for a new database, and the program MILEPOST_PROGRAM."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import uuid
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).parents[3]
STORE = os.environ["MILEPOST_TEST_POSTGRES"]
PROGRAM = os.environ.get("MILEPOST_PROGRAM", "milepost")
END = "-- end of the block, status "
SHOWS = ("milepost jobs list", "psql -At")  # Commands that only show something, and are repeated until their output is the expected one.
LIMIT_S = 120.0
PIPES = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True, "start_new_session": True}
DJANGO = os.environ.get("MILEPOST_TEST_DJANGO", "django")  # The version, such as `django==4.2.*`.


def blocks(page):
    return re.findall(r"^```([^\n]*)\n(.*?)^```", page, re.M | re.S)


def is_like(output, expected):
    return re.fullmatch(".*".join(map(re.escape, expected.strip().split("…"))), output.strip(), re.S)


class TutorialTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        name = f"tutorial_{uuid.uuid4().hex}"
        self.psql(f"create database {name}")
        self.addCleanup(self.psql, f"drop database {name} with (force)")
        self.database = urlsplit(STORE)._replace(path=f"/{name}").geturl()

    def psql(self, statement):
        subprocess.run(["psql", "-qc", statement, STORE], check=True)

    def installed(self):
        """Returns the folder of the programs of a new environment, with the wheel and its extra."""
        sources = shutil.copytree(ROOT / "clients/python", self.folder / "sources", ignore=shutil.ignore_patterns("build", "*.egg-info"))
        subprocess.run([sys.executable, "-m", "venv", self.folder / "venv"], check=True)
        pip = [self.folder / "venv/bin/python", "-m", "pip", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "wheel", "--no-deps", "--wheel-dir", self.folder / "wheels", sources], check=True)
        [wheel] = (self.folder / "wheels").iterdir()
        subprocess.run([*pip, "install", f"{wheel}[django]", "psycopg[binary]", DJANGO], check=True)
        return self.folder / "venv/bin"

    def shell(self, programs):
        """Starts a shell in an empty folder."""
        own, work = self.folder / "programs", self.folder / "work"
        own.mkdir()
        work.mkdir()
        (own / "milepost").symlink_to(shutil.which(PROGRAM))
        environment = {name: value for name, value in os.environ.items() if name not in ("MILEPOST_STORE", "PYTHONPATH")}
        environment.update(PATH=f"{own}:{programs}:{os.environ['PATH']}", DATABASE_URL=self.database, MILEPOST_LISTEN=self.address)
        shell = subprocess.Popen(["bash"], cwd=work, env=environment, **PIPES)

        def leave():
            os.killpg(shell.pid, signal.SIGKILL)
            shell.communicate()

        self.addCleanup(leave)
        return shell

    def run_block(self, text):
        """Runs a block. Returns its output and its status."""
        self.running.stdin.write(f"{{\n{text}}} < /dev/null\necho \"{END}$?\"\n")
        self.running.stdin.flush()
        output = ""
        for line in self.running.stdout:
            rest, end, status = line.partition(END)
            output += rest
            if end:
                return output, status.strip()
        self.fail(f"the shell has ended after: {output}")

    def check_output(self, command, output, expected):
        until = time.monotonic() + LIMIT_S
        only_shows = all(line.startswith(SHOWS) for line in command.splitlines())
        while not is_like(output, expected) and only_shows and time.monotonic() < until:
            time.sleep(0.2)
            output = self.run_block(command)[0]
        self.assertTrue(is_like(output, expected), f"the output of\n{command}\nis another one:\n{output}")

    def test_the_tutorial_for_django_is_followed(self):
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.address = f"127.0.0.1:{free.getsockname()[1]}"
        self.running = self.shell(self.installed())
        page = (ROOT / "docs/tutorials/django.md").read_text().replace("127.0.0.1:7070", self.address)
        began, command, output = time.monotonic(), "", ""
        for info, text in blocks(page):
            if info == "sh":
                command, (output, status) = text, self.run_block(text)
                self.assertEqual(status, "0", f"{command}\n{output}")
            elif info == "sh background":
                self.run_block(f"{{\n{text}}} > /dev/null 2>&1 &\n")
            else:
                self.assertEqual(info, "text")
                self.check_output(command, output, text)
        self.assertLess(time.monotonic() - began, 300)


if __name__ == "__main__":
    unittest.main()
