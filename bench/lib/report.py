"""The page docs/BENCHMARKS.md: tables, charts, settings and commands."""

from pathlib import Path

from .chart import bar_chart, number
from .systems import SQLITE, SYSTEMS

# Title, figure, and whether a larger value is better, of each column.
THROUGHPUT = (
    ("enqueued/s", "enqueued_per_s"), ("run/s", "run_per_s"), ("WAL bytes per job", "wal_bytes"),
    ("CPU s per 1,000 jobs", "cpu_s_per_1000"), ("dead tuples", "dead_tuples"), ("disk bytes per job", "disk_bytes"),
)
LATENCY = (("p50 ms", "latency_p50_ms"), ("p99 ms", "latency_p99_ms"))
CRASH = (
    ("all done after s", "recovery_s"), ("lost", "crash_lost"), ("not run", "crash_stuck"), ("started again", "crash_started_again"),
    ("completed twice", "crash_completed_twice"),
)
IDLE = (("CPU %", "idle_cpu_percent"), ("transactions/s", "idle_transactions_per_s"), ("memory MB", "idle_rss_mb"))
# Only the columns of a group decide whether it was measured.
GROUPS = {"throughput": THROUGHPUT, "latency": LATENCY, "crash": CRASH, "idle": IDLE}

CHARTS = (
    ("bench-run", "Jobs run per second on PostgreSQL (more is better)", "run_per_s", True),
    ("bench-enqueue", "Jobs enqueued per second on PostgreSQL (more is better)", "enqueued_per_s", True),
    ("bench-wal", "WAL bytes per job, enqueued and run (less is better)", "wal_bytes", False),
    ("bench-cpu", "Processor seconds per 1,000 jobs, clients and server (less is better)", "cpu_s_per_1000", False),
    ("bench-latency", "Enqueue to start at a steady rate, p99 in milliseconds (less is better)", "latency_p99_ms", False),
)


def cell(figures: dict, name: str) -> str:
    """Returns the median, with the range if several rounds differ."""
    found = figures.get(name)
    if not found:
        return "–"
    low, high = number(found["min"]), number(found["max"])
    return number(found["median"]) + (f" ({low}–{high})" if low != high else "")


def table(columns: tuple, results: list, group: str) -> str:
    """Returns a Markdown table with one row per system; a system without figures has its reason instead."""
    lines = ["| system | " + " | ".join(title for title, _ in columns) + " |", "|---|" + "---:|" * len(columns)]
    reasons = []
    for result in results:
        figures, reason = result["figures"], result["reasons"].get(group)
        if reason:
            reasons.append(f"{result['name']}: not measured, because {reason.rstrip('.')}.")
        if reason and not any(name in figures for _, name in columns):
            lines.append(f"| {result['name']} | not measured" + " |" * len(columns))
            continue
        lines.append(f"| {result['name']} | " + " | ".join(recovery(figures, name) for _, name in columns) + " |")
    return "\n".join(lines + ([""] + reasons if reasons else []))


def recovery(figures: dict, name: str) -> str:
    """Returns a cell; a recovery that did not end has the duration of the wait."""
    if name == "recovery_s" and "recovery_s" not in figures and "not_recovered_after_s" in figures:
        return f"> {number(figures['not_recovered_after_s']['median'])}"
    return cell(figures, name)


def charts(results: list) -> dict:
    """Returns the SVG of each chart by its name, best system first."""
    drawn = {}
    for name, title, figure, larger_is_better in CHARTS:
        bars = [
            (result["name"], result["figures"][figure]["median"], result["name"].startswith("milepost"))
            for result in results if result["store"] != SQLITE and figure in result["figures"]
        ]
        drawn[name] = bar_chart(title, sorted(bars, key=lambda bar: bar[1], reverse=larger_is_better))
    return drawn


INTRO = """# Benchmarks

Milepost and other job queues, measured by one command on one machine: `bench/run --write-docs`. [bench/README.md](../bench/README.md) describes
the measurements, and how to add a system. Every system has the settings that its documentation recommends for speed. Milepost is not
the best in every figure; the tables contain all of them.

These systems differ in what they store. Milepost and River keep the finished job and, Milepost only, the history of its states;
graphile-worker, pgqueuer and huey delete a finished job. A reader who compares bytes and rates should compare that, too. The systems in
JavaScript and Python run handlers in one thread of these languages, as their users do.

"""

NOTES = {
    "throughput": "A backlog of jobs that do nothing is enqueued in bulk, then run by one worker process. The end is when the database contains no"
    " unfinished job. CPU is the busy time of the whole machine, so client and server together. Dead tuples are counted by ANALYZE after the run"
    " with autovacuum on. On SQLite, WAL and dead tuples do not exist.",
    "latency": "From the call that enqueues a job to the start of its handler in another process, {rate} jobs per second for {latency_s} s, one job"
    " per call.",
    "crash": "{crash_jobs:,} jobs of 20 ms. The worker is killed with SIGKILL when half of them have started, and starts again a second later. \"All done\" is"
    " the time from the kill until the handler of every job has reached its end; the wait ends after {crash_wait_s} s. Lost jobs have not run to their end"
    " by then, and the system stores them no more; jobs that were not run are still stored. Systems that run a job at least once start interrupted"
    " jobs again.",
    "idle": "One worker process without jobs, after 5 s, for {idle_s} s.",
}
TITLES = {"throughput": "Throughput", "latency": "Latency", "crash": "Crash of the worker", "idle": "Idle worker"}


def page(document: dict) -> str:
    """Returns docs/BENCHMARKS.md."""
    sections = [INTRO + environment(document)]
    for group, columns in GROUPS.items():
        images = [name for name, _, figure, _ in CHARTS if any(figure == column for _, column in columns)]
        sections.append(f"## {TITLES[group]}\n\n{NOTES[group].format(**document['sizes'])}\n")
        sections += [f"![{title}](images/{name}.svg)\n" for name, title, _, _ in CHARTS if name in images]
        for store in dict.fromkeys(result["store"] for result in document["results"]):
            chosen = [result for result in document["results"] if result["store"] == store]
            sections.append(f"On {store}:\n\n{table(columns, chosen, group)}\n")
    return "\n".join(sections + [settings(document)])


def environment(document: dict) -> str:
    """Returns the machine, the server and the sizes."""
    machine, sizes = document["machine"], document["sizes"]
    return (
        f"Measured on {document['date']} with {machine['cores']} cores ({machine['processor']}), {machine['memory_gb']} GB of memory,"
        f" Linux {machine['kernel']}, {machine['filesystem']}; PostgreSQL {document['postgres']['version']}. {sizes['jobs']:,} jobs,"
        f" {document['rounds']} round(s); the tables show the median, and the range in parentheses.\n"
    )


def settings(document: dict) -> str:
    """Returns the settings of the server and of each system."""
    lines = ["## Settings\n", "PostgreSQL, a new database for each measurement, and a checkpoint before it:\n", "```ini"]
    lines += [f"{name} = {value}" for name, value in document["postgres"]["settings"].items()]
    lines += ["```\n", "| system | version | language | settings | recovery |", "|---|---|---|---|---|"]
    measured = {result["name"] for result in document["results"]}
    lines += [
        f"| {system.name} | {document['milepost'] if system.own_bench == 'milepost' else system.version} | {system.language} |"
        f" {system.settings} | {system.recovery} |"
        for system in SYSTEMS if system.name in measured
    ]
    return "\n".join([*lines, "", f"Command: `{document['command']}`. The program of each system is in [bench/rivals](../bench/rivals).", ""])


def write(document: dict, docs: Path) -> None:
    """Writes the page and its charts."""
    images = docs / "images"
    images.mkdir(parents=True, exist_ok=True)
    for name, svg in charts(document["results"]).items():
        (images / f"{name}.svg").write_text(svg, encoding="utf-8")
    (docs / "BENCHMARKS.md").write_text(page(document), encoding="utf-8")
