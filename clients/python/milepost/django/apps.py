"""The Django app `milepost.django`."""

from __future__ import annotations

from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules

from . import Settings


class MilepostConfig(AppConfig):
    """Imports the module `milepost_jobs` of each app, whose handlers register themselves."""

    name = "milepost.django"
    label = "milepost"
    verbose_name = "Milepost"

    def ready(self) -> None:
        Settings.read()
        autodiscover_modules("milepost_jobs")
