import os
from urllib.parse import urlsplit

_store = urlsplit(os.environ["MILEPOST_TEST_POSTGRES"])

SECRET_KEY = "a secret of the tests"
INSTALLED_APPS = ["milepost.django", "orders"]
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql", "NAME": _store.path.lstrip("/"), "HOST": _store.hostname, "PORT": _store.port or "",
        "USER": _store.username or "", "PASSWORD": _store.password or "",
    },
    "file": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"},
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
MILEPOST = {"URL": os.environ["MILEPOST_URL"], "QUEUES": [os.environ.get("SHOP_QUEUE", "django")], "LEASE_S": 60.0}
TEST_RUNNER = "shop.runner.Runner"
