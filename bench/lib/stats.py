"""Medians, percentiles and the merging of rounds."""

import math
import statistics


def median(values: list) -> float | None:
    """Returns the median of the values that exist."""
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def percentile(values: list, share: float) -> float | None:
    """Returns the smallest value that at least this share of the values does not exceed."""
    if not values:
        return None
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def merge(rounds: list) -> dict:
    """Returns the median of each figure over the rounds, with the smallest and the largest value."""
    figures = {}
    for name in {name: None for round_ in rounds for name in round_}:
        values = [round_[name] for round_ in rounds if round_.get(name) is not None]
        if values and all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values):
            figures[name] = {"median": median(values), "min": min(values), "max": max(values)}
    return figures


def starts(lines: list) -> tuple:
    """Returns the number of starts of each job, and the latencies in milliseconds, from the lines of a log of jobs."""
    counts, latencies = {}, []
    for line in lines:
        parts = line.split()
        if len(parts) == 3:
            job, sent, started = (int(part) for part in parts)
            counts[job] = counts.get(job, 0) + 1
            latencies.append((started - sent) / 1000)
    return counts, latencies


def ends(lines: list) -> dict:
    """Returns the number of times that the handler of each job reached its end."""
    counts = {}
    for line in lines:
        if " " not in line.strip():
            counts[int(line)] = counts.get(int(line), 0) + 1
    return counts


def crash_figures(lines: list, jobs: int, unfinished: int) -> dict:
    """Returns what happened to the jobs, from the log and the number of jobs that the system still has to run."""
    ended = ends(lines)
    return {
        # Jobs that no handler completed, and that the system does not have any more.
        "crash_lost": max(0, jobs - len(ended) - unfinished),
        # Jobs that no handler completed until the end of the wait.
        "crash_stuck": max(0, min(unfinished, jobs - len(ended))),
        "crash_started_again": sum(1 for count in starts(lines)[0].values() if count > 1),
        "crash_completed_twice": sum(1 for count in ended.values() if count > 1),
    }
