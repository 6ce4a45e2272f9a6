"""Tests of the pure functions of bench/run."""

import unittest
import xml.etree.ElementTree as ElementTree

from lib import chart, report, stats
from lib.measure import river_figures
from lib.systems import SYSTEMS, named


class Stats(unittest.TestCase):
    def test_the_median_ignores_missing_values(self):
        self.assertEqual(stats.median([3, None, 1, 2]), 2)
        self.assertIsNone(stats.median([None]))

    def test_a_percentile_is_a_measured_value(self):
        self.assertEqual(stats.percentile(list(range(1, 101)), 0.99), 99)
        self.assertEqual(stats.percentile([5], 0.5), 5)
        self.assertIsNone(stats.percentile([], 0.5))

    def test_rounds_are_merged_with_their_range(self):
        merged = stats.merge([{"a": 1}, {"a": 3, "b": 5}, {"a": 2}])
        self.assertEqual(merged["a"], {"median": 2, "min": 1, "max": 3})
        self.assertEqual(merged["b"]["median"], 5)

    def test_a_crash_separates_lost_jobs_from_jobs_that_still_wait(self):
        # Job 0 ended; 1 ran twice and ended twice; 2 was interrupted and is gone; 3 was interrupted and is still stored.
        lines = ["0 10 20", "0", "1 10 20", "1", "1 10 30", "1", "2 10 20", "3 10 20"]
        self.assertEqual(
            stats.crash_figures(lines, 4, 1),
            {"crash_lost": 1, "crash_stuck": 1, "crash_started_again": 1, "crash_completed_twice": 1},
        )

    def test_latencies_are_in_milliseconds(self):
        self.assertEqual(stats.starts(["7 1000 3500", "7"]), ({7: 1}, [2.5]))


class Report(unittest.TestCase):
    def test_a_system_that_was_not_measured_has_a_row_and_a_reason(self):
        results = [
            {"name": "one", "figures": {"latency_p50_ms": {"median": 2, "min": 1, "max": 3}}, "reasons": {}},
            {"name": "two", "figures": {}, "reasons": {"latency": "npm is missing"}},
        ]
        text = report.table(report.LATENCY, results, "latency")
        self.assertIn("| one | 2 (1–3) | – |", text)
        self.assertIn("| two | not measured | |", text)
        self.assertIn("two: not measured, because npm is missing.", text)

    def test_a_recovery_that_did_not_end_has_the_duration_of_the_wait(self):
        figures = {"not_recovered_after_s": {"median": 240, "min": 240, "max": 240}}
        self.assertEqual(report.recovery(figures, "recovery_s"), "> 240")

    def test_a_chart_is_valid_xml_with_a_bar_for_each_system(self):
        svg = ElementTree.fromstring(chart.bar_chart("A & B", [("ours", 10, True), ("theirs <1>", 0, False)]))
        bars = [one for one in svg if one.tag.endswith("rect")]
        self.assertEqual(len(bars), 2)
        self.assertEqual([bar.get("width") for bar in bars], ["460.0", "1.0"])

    def test_the_summary_of_river_is_read(self):
        line = "bench: total jobs worked [       3000 ], total jobs inserted [       3000 ], overall job/sec [     4886.6 ], p95 [ 1.2s ]"
        self.assertEqual(river_figures(line), {"jobs": 3000, "run_per_s": 4886.6})


class Systems(unittest.TestCase):
    def test_names_are_unique_and_unknown_names_are_rejected(self):
        self.assertEqual(len({system.name for system in SYSTEMS}), len(SYSTEMS))
        self.assertEqual([system.name for system in named("huey,milepost")], ["milepost", "huey"])
        with self.assertRaises(SystemExit):
            named("no-such-system")


if __name__ == "__main__":
    unittest.main()
