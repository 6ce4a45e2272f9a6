"""What the tests share: the built packages, commands, and checks of an installed program."""

import contextlib
import functools
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from packages.release import ROOT, version

PROGRAM = Path(os.environ["MILEPOST_PROGRAM"])
WORK = Path(os.environ["MILEPOST_TEST_WORK"])
DOWNLOADS = Path(os.environ["MILEPOST_TEST_DOWNLOADS"])
VERSION = version()
EMPTY_ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/nonexistent", "LANG": "C.UTF-8"}

Arguments = Sequence[str | Path]


def run(*command: str | Path, cwd: Path | None = None, env: Mapping[str, str] | None = None, status: int = 0) -> str:
    """Runs a command and returns its output. Fails with the output if the exit status differs."""
    ran = subprocess.run(command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert ran.returncode == status, f"{command}: exit status {ran.returncode}\n{ran.stdout}"
    return ran.stdout


def new_folder() -> Path:
    """Returns an empty folder that is removed at the end."""
    return Path(tempfile.mkdtemp(dir=WORK))


def wait(condition: Callable[[], bool], what: str, limit_s: float = 60) -> None:
    """Waits until a condition holds."""
    end = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end, f"waited {limit_s} s in vain: {what}"
        time.sleep(0.1)


@functools.cache
def packages() -> Path:
    """Returns the folder of the packages, built once. They are for this machine, and for another one whose program cannot run here."""
    output = WORK / "packages"
    run(ROOT / "scripts/package", "--program", PROGRAM, "--program", program_for_another_machine(), output)
    return output


def program_for_another_machine() -> Path:
    """Returns a file whose header shows a program for aarch64, to test names and dependencies of packages; its code is not."""
    program = WORK / "aarch64" / "milepost"
    program.parent.mkdir(exist_ok=True)
    data = bytearray(Path("/bin/true").read_bytes())
    data[18:20] = (183).to_bytes(2, "little")
    program.write_bytes(data)
    program.chmod(0o755)
    return program


def package(pattern: str) -> Path:
    """Returns the one package that the pattern matches."""
    found = list(packages().glob(pattern))
    assert len(found) == 1, f"{pattern}: {found}"
    return found[0]


def runs_a_job(milepost: Arguments, environment: Mapping[str, str], folder: Path | None = None) -> None:
    """Checks that an installed program has the right version, makes a project, and runs a job of it; SIGTERM ends the worker."""
    assert run(*milepost, "--version", env=environment) == f"milepost {VERSION}\n"
    project = (folder or new_folder()) / "shop"
    run(*milepost, "init", project, env=environment)
    run(*milepost, "enqueue", "hello", "--payload", '{"name": "Ada"}', cwd=project, env=environment)
    worker = subprocess.Popen([*milepost, "work"], cwd=project, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        def has_succeeded() -> bool:
            list_jobs = [*milepost, "jobs", "list", "--state", "succeeded", "--json"]
            return subprocess.check_output(list_jobs, cwd=project, env=environment, stderr=subprocess.DEVNULL).strip() != b"[]"

        wait(has_succeeded, "the job succeeds")
    finally:
        worker.send_signal(signal.SIGTERM)
        printed, _ = worker.communicate(timeout=60)
    assert worker.returncode == 0, printed
    assert not processes_in(project), f"processes in {project} still run: {processes_in(project)}"


def processes_in(folder: Path) -> list[str]:
    """Returns the ids of processes whose working folder this is."""
    found = []
    for link in Path("/proc").glob("[0-9]*/cwd"):
        with contextlib.suppress(OSError):
            if link.readlink() == folder:
                found.append(link.parent.name)
    return found


def passes_the_demo(milepost: Arguments, environment: Mapping[str, str], folder: Path) -> None:
    """Checks that the demo finds no fault."""
    printed = run(*milepost, "demo", "--no-serve", "--places", "1000", cwd=folder, env=environment)
    assert "Every check passed." in printed, printed


def completes(files: Mapping[str, Path]) -> None:
    """Checks that completions are complete scripts of each shell."""
    assert "milepost" in run("bash", "-c", 'source "$0" && complete -p milepost', files["bash"])
    assert files["zsh"].read_text().startswith("#compdef milepost\n")
    assert "complete -c milepost" in files["fish"].read_text()


def has_manual_pages(folder: Path, suffix: str = "") -> None:
    """Checks that the folder has the page of the command, and those of its subcommands."""
    names = {page.name.removesuffix(suffix) for page in folder.glob("milepost*")}
    assert {"milepost.1", "milepost-work.1", "milepost-jobs-retry.1"} <= names, names
    assert len(names) > 100, names


def free_port() -> int:
    """Returns a port of the loopback address that no process uses."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def answers(url: str) -> int:
    """Returns the status of a response, or 0 if nothing listens."""
    try:
        with urllib.request.urlopen(url, timeout=5) as response:
            return int(response.status)
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code
    except OSError:
        return 0


@contextlib.contextmanager
def running(*command: str | Path, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> Iterator[subprocess.Popen[str]]:
    """Runs a process in the background; SIGTERM must end it with status 0, or with the signal."""
    log = tempfile.TemporaryFile("w+", dir=WORK)
    process = subprocess.Popen(command, env=env, cwd=cwd, stdout=log, stderr=log, text=True)
    try:
        yield process
        assert process.poll() is None, f"{command} ended early"
        process.terminate()
        assert process.wait(60) in (0, -signal.SIGTERM), f"{command}: exit status {process.returncode}"
    except BaseException:
        log.seek(0)
        print(f"{command} printed:\n{log.read()}")
        raise
    finally:
        process.kill()
        process.wait()
        log.close()


@functools.cache
def debian() -> Path:
    """Returns the root of a minimal Debian, made once with debootstrap and never changed."""
    root = DOWNLOADS / "debian-bookworm"
    if not root.exists():
        making = root.with_suffix(".part")
        shutil.rmtree(making, ignore_errors=True)
        making.parent.mkdir(parents=True, exist_ok=True)
        run("debootstrap", "--variant=minbase", "--include=adduser", "bookworm", making)
        run("chroot", making, "apt-get", "clean")
        making.rename(root)
    return root
