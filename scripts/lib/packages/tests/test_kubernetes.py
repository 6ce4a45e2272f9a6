"""The Helm chart, rendered by Helm, and the manifests for installations without Helm."""

import subprocess
import sys
import tomllib
import unittest
from typing import Any

import helm_python
import yaml
from packages.release import ROOT, version

from . import support

CHART = ROOT / "ops/helm/milepost"
AUTOSCALING = ROOT / "ops/kubernetes/autoscaling"
Manifest = dict[str, Any]


def rendered(values: dict[str, object] | None = None) -> list[Manifest]:
    """Returns all manifests of the chart."""
    with helm_python.Chart.load(str(CHART)) as chart:
        files = chart.render(values, name="milepost", namespace="milepost")
    return [manifest for text in files.values() for manifest in yaml.safe_load_all(text) if manifest]


def of_kind(kind: str, manifests: list[Manifest]) -> dict[str, Manifest]:
    """Returns the manifests of a kind by their names."""
    return {manifest["metadata"]["name"]: manifest for manifest in manifests if manifest["kind"] == kind}


def pods(manifests: list[Manifest]) -> list[Manifest]:
    """Returns the templates of all pods."""
    return [manifest["spec"]["template"] for manifest in manifests if manifest["kind"] in ("Deployment", "Job")]


class Kubernetes(unittest.TestCase):
    def test_the_manifests_are_the_rendered_chart(self) -> None:
        support.run(sys.executable, ROOT / "scripts/kubernetes", "--check")

    def test_each_manifest_is_valid_for_the_oldest_and_the_newest_kubernetes(self) -> None:
        files = [ROOT / "ops/kubernetes/milepost.yaml", AUTOSCALING / "hpa.yaml"]
        for kubernetes in ["1.25", "1.37"]:
            command = [sys.executable, "-m", "kubernetes_validate", "--strict", "--quiet", "-k", kubernetes, *map(str, files)]
            ran = subprocess.run(command, capture_output=True, text=True)
            self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)

    def test_helm_finds_no_fault_in_the_chart(self) -> None:
        found = helm_python.lint(str(CHART))
        self.assertNotIn("ERROR", str(found))
        self.assertNotIn("WARNING", str(found))

    def test_the_chart_has_the_version_of_the_release(self) -> None:
        chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
        self.assertEqual((chart["version"], chart["appVersion"]), (version(), version()))

    def test_server_relay_and_workers_run_apart(self) -> None:
        deployments = of_kind("Deployment", rendered())
        parts = {name: [pod["args"][2]] for name, one in deployments.items() for pod in one["spec"]["template"]["spec"]["containers"]}
        self.assertEqual(parts, {"milepost-server": ["api"], "milepost-relay": ["relay"], "milepost-worker": ["work"]})

    def test_images_have_a_version_or_a_digest(self) -> None:
        images = {one["image"] for pod in pods(rendered()) for one in pod["spec"]["containers"]}
        self.assertEqual(images, {f"ghcr.io/milepost/milepost:{version()}"})
        pinned = rendered({"image": {"digest": "sha256:0123"}})
        self.assertEqual({one["image"] for pod in pods(pinned) for one in pod["spec"]["containers"]}, {"ghcr.io/milepost/milepost@sha256:0123"})

    def test_containers_have_no_privileges_and_limited_memory(self) -> None:
        for pod in pods(rendered()):
            self.assertFalse(pod["spec"]["automountServiceAccountToken"])
            for container in pod["spec"]["containers"]:
                context = container["securityContext"]
                self.assertTrue(context["runAsNonRoot"] and context["readOnlyRootFilesystem"])
                self.assertEqual((context["runAsUser"], context["allowPrivilegeEscalation"], context["capabilities"]), (10001, False, {"drop": ["ALL"]}))
                self.assertIn("memory", container["resources"]["limits"])

    def test_budgets_policies_and_services_select_pods(self) -> None:
        manifests = rendered()
        labels = [pod["metadata"]["labels"] for pod in pods(manifests)]
        selectors = [one["spec"]["selector"]["matchLabels"] for one in of_kind("PodDisruptionBudget", manifests).values()]
        selectors += [one["spec"]["podSelector"]["matchLabels"] for one in of_kind("NetworkPolicy", manifests).values()]
        selectors += [one["spec"]["selector"] for one in of_kind("Service", manifests).values()]
        self.assertEqual(len(selectors), 3 + 2 + 1)
        for selector in selectors:
            self.assertTrue(any(selector.items() <= one.items() for one in labels), selector)

    def test_only_prometheus_connects_to_workers_and_relays(self) -> None:
        policies = of_kind("NetworkPolicy", rendered())
        common = policies["milepost"]["spec"]
        self.assertEqual(common["policyTypes"], ["Ingress", "Egress"])
        sources = [source for rule in common["ingress"] for source in rule["from"]]
        self.assertEqual(sources, [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}])
        self.assertEqual(set(policies), {"milepost", "milepost-server"})

    def test_an_autoscaler_can_set_the_number_of_workers(self) -> None:
        spec = of_kind("Deployment", rendered({"worker": {"replicas": None}}))["milepost-worker"]["spec"]
        self.assertNotIn("replicas", spec)
        self.assertIn("milepost-worker", of_kind("Deployment", rendered()))
        for file in ["keda.yaml", "hpa.yaml"]:
            targets = [one["spec"]["scaleTargetRef"]["name"] for one in yaml.safe_load_all((AUTOSCALING / file).read_text()) if "scaleTargetRef" in one["spec"]]
            self.assertEqual(targets, ["milepost-worker"], file)

    def test_parts_can_be_left_out(self) -> None:
        values: dict[str, object] = {part: {"enabled": False} for part in ["relay", "worker", "migration", "networkPolicy"]}
        self.assertEqual({manifest["kind"] for manifest in rendered(values)}, {"Deployment", "PodDisruptionBudget", "Service"})

    def test_the_compose_file_has_the_version_of_the_release(self) -> None:
        services = yaml.safe_load((ROOT / "ops/compose.yaml").read_text())["services"]
        images = {service["image"] for service in services.values() if "build" in service}
        self.assertEqual(images, {f"ghcr.io/milepost/milepost:{version()}"})
        self.assertTrue(all(":" in service["image"].rsplit("/", 1)[1] for service in services.values()))

    def test_the_image_compiles_with_a_supported_rust(self) -> None:
        oldest = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["rust-version"]
        self.assertIn(f"library/rust:{oldest}-slim-bookworm", (ROOT / "ops/Containerfile").read_text())
