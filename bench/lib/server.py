"""A private PostgreSQL with documented settings, and statements through psql."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Durability as in production. Checkpoints do not start during a measurement: one is made before it.
SETTINGS = {
    "listen_addresses": "'127.0.0.1'",
    "unix_socket_directories": "''",
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "max_wal_size": "'8GB'",
    "checkpoint_timeout": "'30min'",
    "max_connections": "200",
}


def shared_buffers() -> str:
    """Returns an eighth of the memory, 1 GB at most."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return f"{min(1024, total // 8 // 2**20)}MB"


def find_programs(version: str | None, work: Path) -> Path:
    """Returns the folder of PostgreSQL's programs; scripts/lib/install.sh installs a version that is missing."""
    script = f'''. "{ROOT}/scripts/lib/install.sh"; downloads="{work}/downloads"; mkdir -p "$downloads"
        postgres_programs "{version or ''}" "{work}/postgresql-{version or ''}"'''
    found = subprocess.run(["bash", "-euc", script], check=True, capture_output=True, text=True)
    return Path(found.stdout.strip().splitlines()[-1])


class Server:
    """A PostgreSQL that exists while the `with` statement runs."""

    def __init__(self, version: str | None, work: Path) -> None:
        self.bin = find_programs(version, work)
        self.home = Path(tempfile.mkdtemp(prefix="milepost-bench-"))
        self.data = self.home / "data"
        self.log = self.home / "postgres.log"
        self.settings = {**SETTINGS, "shared_buffers": f"'{shared_buffers()}'"}
        # PostgreSQL refuses to run as root.
        self.as_server = []
        if os.geteuid() == 0:
            self._use_account()
        self.port = None

    def _use_account(self) -> None:
        try:
            pwd.getpwnam("postgres")
        except KeyError:
            subprocess.run(["useradd", "--system", "--no-create-home", "postgres"], check=True)
        shutil.chown(self.home, "postgres")
        self.as_server = ["runuser", "-u", "postgres", "--"]

    def _run(self, *command: str) -> None:
        done = subprocess.run([*self.as_server, *command], cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True)
        if done.returncode:
            log = self.log.read_text() if self.log.exists() else ""
            raise SystemExit(f"PostgreSQL could not be started: {done.stderr}{log}")

    def __enter__(self) -> "Server":
        self._run(str(self.bin / "initdb"), "-D", str(self.data), "-U", "postgres", "-A", "trust", "-E", "UTF8",
                  "--locale=C.UTF-8")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        text = "".join(f"{name} = {value}\n" for name, value in {**self.settings, "port": self.port}.items())
        with open(self.data / "postgresql.conf", "a", encoding="utf-8") as file:
            file.write(text)
        # pg_ctl must not inherit the pipes of this process: the server would keep them open.
        subprocess.run([*self.as_server, str(self.bin / "pg_ctl"), "-D", str(self.data), "-l", str(self.log), "-w", "start"],
                       cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
        return self

    def __exit__(self, *_: object) -> None:
        subprocess.run([*self.as_server, str(self.bin / "pg_ctl"), "-D", str(self.data), "-m", "immediate", "stop"],
                       cwd="/", stdout=subprocess.DEVNULL, check=False)
        shutil.rmtree(self.home, ignore_errors=True)

    def url(self, database: str) -> str:
        return f"postgres://postgres@127.0.0.1:{self.port}/{database}"

    def sql(self, statement: str, database: str = "postgres") -> str:
        """Returns the output of a statement."""
        command = ["psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-d", self.url(database), "-c", statement]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{statement}: {done.stderr.strip()}")
        return done.stdout.strip()

    def version(self) -> str:
        return self.sql("show server_version")

    def fresh_database(self, name: str) -> str:
        """Creates the database again and writes a checkpoint; returns its URL."""
        self.sql(f'drop database if exists "{name}" with (force)')
        self.sql(f'create database "{name}"')
        self.sql("checkpoint")
        return self.url(name)

    def wal_bytes(self) -> int:
        return int(self.sql("select (pg_current_wal_insert_lsn() - '0/0')::int8"))

    def transactions(self, name: str) -> int:
        """Returns the transactions of a database, counted by a connection to another one."""
        return int(self.sql(f"select xact_commit + xact_rollback from pg_stat_database where datname = '{name}'"))

    def dead_tuples(self, name: str) -> int:
        """Returns the dead tuples of all tables. ANALYZE counts them; it does not remove any."""
        self.sql("analyze", name)
        return int(self.sql("select coalesce(sum(n_dead_tup), 0)::int8 from pg_stat_user_tables", name))

    def database_bytes(self, name: str) -> int:
        return int(self.sql(f"select pg_database_size('{name}')"))
