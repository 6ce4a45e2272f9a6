"""The command `manage.py milepost_migrate`."""

from __future__ import annotations

import os
import subprocess
from typing import Any
from urllib.parse import quote, urlencode

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connections

from milepost.django import Settings


class Command(BaseCommand):
    help = "Creates or updates Milepost's tables in the database of the setting MILEPOST, with the program `milepost`. Also for a test database."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--program", default="milepost", help="the path of the program")

    def handle(self, *_: Any, program: str, **options: Any) -> None:
        store = store_url(connections[Settings.read().database].settings_dict)
        # In the environment, because other users can see the arguments of a process.
        environment = {**os.environ, "MILEPOST_STORE": store}
        try:
            ran = subprocess.run([program, "migrate"], env=environment, capture_output=True, text=True)
        except OSError as error:
            raise CommandError(f"{program} cannot be started: {error}; install milepost, or pass its path with --program") from error
        if ran.returncode != 0:
            raise CommandError(ran.stderr.strip())
        if options["verbosity"] > 0:
            self.stdout.write(ran.stdout.strip())


def store_url(database: dict[str, Any]) -> str:
    """Returns the address of a database of the setting `DATABASES`, as the program accepts it."""
    if "postgresql" not in database["ENGINE"]:
        raise CommandError(f"Milepost's SQL functions need PostgreSQL, and the database has the engine {database['ENGINE']}")
    names = {"HOST": "host", "PORT": "port", "USER": "user", "PASSWORD": "password"}
    place = {name: str(database[key]) for key, name in names.items() if database.get(key)}
    tls = {name: str(value) for name, value in database.get("OPTIONS", {}).items() if name in ("sslmode", "sslrootcert")}
    return f"postgres:///{quote(str(database['NAME']), safe='')}?{urlencode({**place, **tls}, quote_via=quote)}"
