from django.core.management import call_command
from django.test.runner import DiscoverRunner


class Runner(DiscoverRunner):
    """Creates Milepost's tables in the test database."""

    def setup_databases(self, **options):
        databases = super().setup_databases(**options)
        call_command("milepost_migrate", verbosity=0)
        return databases
