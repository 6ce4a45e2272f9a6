"""The queries of the recipes for autoscaling, run on a real store and on the metrics of a real server in Prometheus."""

import json
import os
import unittest
import urllib.parse
import urllib.request

import yaml
from packages.release import ROOT

from . import support
from .support import PROGRAM, run

SERVER = os.environ["MILEPOST_TEST_POSTGRES"]
PSQL = os.environ["MILEPOST_TEST_POSTGRES_BIN"] + "/psql"
AUTOSCALING = ROOT / "ops/kubernetes/autoscaling"


def keda_queries() -> dict[str, str]:
    """Returns the queries of the ScaledObject by the names of the triggers."""
    scaled = list(yaml.safe_load_all((AUTOSCALING / "keda.yaml").read_text()))[1]
    return {trigger["name"]: trigger["metadata"]["query"] for trigger in scaled["spec"]["triggers"]}


def adapter_queries() -> dict[str, str]:
    """Returns the queries for the metrics that the HorizontalPodAutoscaler names, as prometheus-adapter sends them."""
    rules = yaml.safe_load((AUTOSCALING / "prometheus-adapter.yaml").read_text())["rules"]["external"]
    by_name = {rule["name"]["as"]: rule["metricsQuery"] for rule in rules}
    metrics = [metric["external"]["metric"] for metric in yaml.safe_load((AUTOSCALING / "hpa.yaml").read_text())["spec"]["metrics"]]
    queries = {}
    for metric in metrics:
        labels = ",".join(f'{name}="{value}"' for name, value in metric["selector"]["matchLabels"].items())
        queries[metric["name"]] = by_name[metric["name"]].replace("<<.LabelMatchers>>", labels)
    return queries


class Autoscaling(unittest.TestCase):
    store: str
    prometheus: str

    @classmethod
    def setUpClass(cls) -> None:
        database = "autoscaling"
        run(PSQL, "--no-psqlrc", "-c", f"create database {database}", SERVER)
        cls.store = urllib.parse.urlsplit(SERVER)._replace(path=f"/{database}").geturl()
        cls.milepost("migrate")
        run(PSQL, "--no-psqlrc", "-q", "-v", "ON_ERROR_STOP=1", "-f", ROOT / "ops/postgres/roles.sql", cls.store)
        cls.start_server_and_prometheus()

    @classmethod
    def start_server_and_prometheus(cls) -> None:
        serving, scraping = support.free_port(), support.free_port()
        cls.prometheus = f"http://127.0.0.1:{scraping}"
        folder = support.new_folder()
        target = {"targets": [f"127.0.0.1:{serving}"]}
        settings = {"scrape_configs": [{"job_name": "milepost", "scrape_interval": "1s", "static_configs": [target]}]}
        (folder / "prometheus.yml").write_text(json.dumps(settings))
        server = [PROGRAM, "--store", cls.store, "serve", "--only", "api", "--listen", f"127.0.0.1:{serving}"]
        cls.enterClassContext(support.running(*server))
        options = [f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data", f"--web.listen-address=127.0.0.1:{scraping}"]
        cls.enterClassContext(support.running("prometheus", *options))
        support.wait(lambda: support.answers(f"{cls.prometheus}/-/ready") == 200, "Prometheus is ready")

    @classmethod
    def milepost(cls, *arguments: str) -> str:
        return run(PROGRAM, "--store", cls.store, *arguments)

    def asked_by_keda(self, trigger: str) -> float:
        """Runs the trigger's query with the rights of milepost_reader."""
        query = f"set role milepost_reader; {keda_queries()[trigger]}"
        return float(run(PSQL, "--no-psqlrc", "-qtA", "-c", query, self.store))

    def asked_by_the_adapter(self, metric: str) -> float | None:
        """Runs the metric's query in Prometheus. None if there is no such series."""
        query = urllib.parse.urlencode({"query": adapter_queries()[metric]})
        with urllib.request.urlopen(f"{self.prometheus}/api/v1/query?{query}", timeout=10) as response:
            found = json.load(response)["data"]["result"]
        self.assertLessEqual(len(found), 1, found)
        return float(found[0]["value"][1]) if found else None

    def test_both_recipes_measure_due_jobs_of_a_queue_that_is_not_paused(self) -> None:
        self.assertEqual((self.asked_by_keda("depth"), self.asked_by_keda("age")), (0, 0), "an empty store")
        for _ in range(3):
            self.milepost("enqueue", "mail")
        self.milepost("enqueue", "mail", "--at", "in 1h")
        self.milepost("enqueue", "mail", "--queue", "other")

        self.assertEqual(self.asked_by_keda("depth"), 3)
        support.wait(lambda: self.asked_by_the_adapter("milepost_queue_depth") == 3, "Prometheus has the number of due jobs")
        support.wait(lambda: self.asked_by_keda("age") > 2, "the oldest job grows older")
        support.wait(lambda: (self.asked_by_the_adapter("milepost_queue_age_seconds") or 0) > 2, "Prometheus has the age of the oldest job")
        self.assertLess(self.asked_by_keda("age"), 600)

        self.milepost("queues", "pause", "default")
        self.assertEqual((self.asked_by_keda("depth"), self.asked_by_keda("age")), (0, 0), "a paused queue")
        for metric in adapter_queries():
            support.wait(lambda: self.asked_by_the_adapter(metric) == 0, f"{metric} of a paused queue is 0")
