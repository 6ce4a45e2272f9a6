"""The command `manage.py milepost_worker`."""

from __future__ import annotations

import logging
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from milepost.client import Problem
from milepost.django import handlers, run_worker


class Command(BaseCommand):
    help = "Runs jobs with the handlers in the modules milepost_jobs of all apps, until SIGINT or SIGTERM. Options replace the setting MILEPOST."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--url", help="the address of `milepost serve`")
        parser.add_argument("--queues", type=lambda names: names.split(","), help="the queues to serve, separated by commas")
        parser.add_argument("--concurrency", type=int, help="how many jobs run at the same time")
        parser.add_argument("--processes", action="store_true", default=None, help="run handlers in child processes instead of threads")
        parser.add_argument("--lease-s", type=float, help="how long the jobs of a killed worker stay assigned to it, in seconds")

    def handle(self, *_: Any, **options: Any) -> None:
        if not handlers:
            raise CommandError("there are no handlers; add a module milepost_jobs.py to an app in INSTALLED_APPS, with functions that have @handler(KIND)")
        if not logging.getLogger("milepost").hasHandlers():
            logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
        names = ("url", "queues", "concurrency", "processes", "lease_s")
        try:
            run_worker(**{name: options[name] for name in names})
        except Problem as problem:
            raise CommandError(f"the server rejects the worker: {problem}") from problem
