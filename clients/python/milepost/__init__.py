"""Python client for Milepost: creates and runs jobs through the HTTP API of `milepost serve`, and calls the SQL functions in the transactions of
psycopg, SQLAlchemy and Django. The package itself requires only Python 3.11."""

from .aio import AsyncClient, AsyncWorker
from .client import Client, Created, Emitted, MilepostError, NewEvent, NewJob, Problem, Unreachable
from .handlers import Handler, Handlers
from .job import Backoff, Cancelled, Failed, Fenced, Job, Snooze
from .worker import Worker

__all__ = [
    "AsyncClient", "AsyncWorker", "Backoff", "Cancelled", "Client", "Created", "Emitted", "Failed", "Fenced", "Handler", "Handlers", "Job",
    "MilepostError", "NewEvent", "NewJob", "Problem", "Snooze", "Unreachable", "Worker",
]
