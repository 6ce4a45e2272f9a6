"""Python client for Milepost: creates and runs jobs through the HTTP API of `milepost serve`. Requires only Python 3.11."""

from .client import Client, Created, NewJob, Problem, Unreachable
from .worker import Backoff, Cancelled, Failed, Job, Snooze, Worker

__all__ = ["Backoff", "Cancelled", "Client", "Created", "Failed", "Job", "NewJob", "Problem", "Snooze", "Unreachable", "Worker"]
