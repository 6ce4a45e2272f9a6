"""Milepost for Python: create jobs and run them, over the HTTP API of `milepost serve`. Needs nothing but Python 3.11."""

from .client import Client, Created, NewJob, Problem, Unreachable
from .worker import Cancelled, Failed, Job, Snooze, Worker

__all__ = ["Cancelled", "Client", "Created", "Failed", "Job", "NewJob", "Problem", "Snooze", "Unreachable", "Worker"]
