"""Tests of the SQL functions in the transactions of psycopg and SQLAlchemy, on PostgreSQL. The server at MILEPOST_URL has the store at
MILEPOST_TEST_POSTGRES; MILEPOST_PROGRAM is the program `milepost` (by default the one in PATH)."""

import asyncio
import contextlib
import inspect
import os
import subprocess
import tempfile
import unittest
import uuid
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import psycopg
import sqlalchemy
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

import milepost.psycopg
import milepost.sqlalchemy
from milepost import Fenced, MilepostError, NewEvent, NewJob, errors
from milepost.sql import Event
from tests.workplace import Workplace, until

STORE = os.environ["MILEPOST_TEST_POSTGRES"]
PROGRAM = os.environ.get("MILEPOST_PROGRAM", "milepost")
BULK = """[bulk.python_members]
source = "select id from python_effect where id > :cursor and :topic = 4 order by id limit :limit"
key = ["id"]
apply = "select id from chunk"
"""


class Transaction:
    """A transaction of a library. `execute` runs a statement of the test."""

    def __init__(self, module, connection, execute):
        self._module, self._connection, self._execute = module, connection, execute

    def __getattr__(self, name):
        function = getattr(self._module, name)

        async def call(*given, **named):
            return await awaited(function(self._connection, *given, **named))

        return call

    async def execute(self, statement):
        return await awaited(self._execute(statement))


async def awaited(value):
    return await value if inspect.isawaitable(value) else value


def url(driver):
    return "postgresql+" + driver + "://" + STORE.partition("://")[2]


@contextlib.asynccontextmanager
async def in_psycopg():
    with psycopg.connect(STORE, row_factory=psycopg.rows.dict_row) as connection:
        yield Transaction(milepost.psycopg, connection, connection.execute)


@contextlib.asynccontextmanager
async def in_async_psycopg():
    async with await psycopg.AsyncConnection.connect(STORE) as connection:
        yield Transaction(milepost.psycopg, connection, connection.execute)


def in_core(driver):
    @contextlib.asynccontextmanager
    async def transaction():
        engine = sqlalchemy.create_engine(url(driver))
        try:
            with engine.begin() as connection:
                yield Transaction(milepost.sqlalchemy, connection, lambda statement: connection.execute(sqlalchemy.text(statement)))
        finally:
            engine.dispose()

    return transaction


@contextlib.asynccontextmanager
async def in_session():
    engine = sqlalchemy.create_engine(url("psycopg"))
    try:
        with Session(engine) as session, session.begin():
            yield Transaction(milepost.sqlalchemy, session, lambda statement: session.execute(sqlalchemy.text(statement)))
    finally:
        engine.dispose()


def in_async(open_connection):
    @contextlib.asynccontextmanager
    async def transaction():
        engine = create_async_engine(url("asyncpg"))
        try:
            async with open_connection(engine) as connection:
                yield Transaction(milepost.sqlalchemy, connection, lambda statement: connection.execute(sqlalchemy.text(statement)))
        finally:
            await engine.dispose()

    return transaction


@contextlib.asynccontextmanager
async def async_session(engine):
    async with AsyncSession(engine) as session, session.begin():
        yield session


@dataclass
class Mail:
    to: str
    at: datetime


class SqlCases:
    """The tests that each library passes. `transaction` commits at its end, or rolls back after an exception."""

    @classmethod
    def setUpClass(cls):
        with psycopg.connect(STORE, autocommit=True) as connection:
            connection.execute("create table if not exists python_effect (id uuid primary key)")

    def setUp(self):
        super().setUp()
        self.name = str(uuid.uuid4())

    def effects(self):
        with psycopg.connect(STORE) as connection:
            return connection.execute("select count(*) from python_effect where id = %s", [self.name]).fetchone()[0]

    def in_one(self, *steps):
        """Runs the steps in one transaction. Returns their values."""

        async def run():
            async with self.transaction() as tx:
                return [await awaited(step(tx)) for step in steps]

        return asyncio.run(run())

    def refused(self, kind, step):
        """Returns the error of a call, which a library raises as the cause of `kind`."""
        with self.assertRaises(kind) as refused:
            self.in_one(step)
        self.assertIsInstance(refused.exception, MilepostError)
        self.assertIsNotNone(refused.exception.__cause__)
        return refused.exception

    def insert(self, tx):
        return tx.execute(f"insert into python_effect values ('{self.name}')")

    def test_a_job_and_a_row_are_stored_together_or_not_at_all(self):
        job = NewJob("k", {"n": 1}, queue=self.queue, key=self.name)

        def fail(tx):
            raise ZeroDivisionError

        with self.assertRaises(ZeroDivisionError):
            self.in_one(self.insert, lambda tx: tx.enqueue(job), fail)
        self.assertEqual((self.effects(), list(self.healthy.jobs(queue=self.queue))), (0, []))
        [_, first, again] = self.in_one(self.insert, lambda tx: tx.enqueue(job), lambda tx: tx.enqueue(job))
        self.assertEqual((first.duplicate, again.duplicate, again.id), (False, True, first.id))
        self.assertEqual((self.effects(), self.healthy.job(first.id)["payload"]), (1, {"n": 1}))

    def test_a_waiting_job_is_replaced(self):
        job = NewJob("k", {"n": 1}, queue=self.queue, key=self.name, on_duplicate={"action": "replace"})
        [first, [again, plain]] = self.in_one(
            lambda tx: tx.enqueue(job),
            lambda tx: tx.enqueue_many([replace(job, payload={"n": 2}), NewJob("k", queue=self.queue)]),
        )
        self.assertEqual((first.outcome, again.outcome, plain.outcome), ("created", "replaced", "created"))
        self.assertEqual((again.id, again.duplicate, plain.duplicate), (first.id, True, False))
        over_http = self.healthy.create(replace(job, payload={"n": 3}))
        self.assertEqual((over_http.id, over_http.outcome), (first.id, "replaced"))
        self.assertEqual(self.healthy.job(first.id)["payload"], {"n": 3})

    def test_many_jobs_have_their_settings(self):
        at = datetime(2099, 12, 31, 23, 30, tzinfo=timezone(timedelta(hours=2)))
        jobs = [
            NewJob("k", Mail("ada:x %s", at), self.queue, self.name, None, 1, 3, 5_000_000_000, None, at),
            NewJob("other", [None, 1.5, "ä\"'"], self.queue, delay_ms=3_600_000),
            NewJob("k", queue=self.queue, group=self.name),
        ]
        [created] = self.in_one(lambda tx: tx.enqueue_many(jobs))
        first, second, third = (self.healthy.job(one.id) for one in created)
        self.assertEqual(first["payload"], {"to": "ada:x %s", "at": at.isoformat()})
        settings = [first[name] for name in ("kind", "key", "priority", "max_attempts")]
        self.assertEqual(settings, ["k", self.name, 1, 3])
        self.assertEqual(datetime.fromisoformat(first["ready_at"]), at)
        self.assertEqual((second["kind"], second["payload"], third["payload"], third["group"]), ("other", [None, 1.5, "ä\"'"], {}, self.name))
        self.assertGreater(datetime.fromisoformat(second["ready_at"]), datetime.now(timezone.utc) + timedelta(minutes=50))
        self.assertEqual(self.in_one(lambda tx: tx.enqueue_many([])), [[]])

    def test_refused_jobs_raise_the_exception_of_their_sqlstate(self):
        error = self.refused(errors.InvalidJob, lambda tx: tx.enqueue(NewJob("")))
        self.assertEqual(error.sqlstate, "MP001")
        self.refused(errors.InvalidValue, lambda tx: tx.enqueue(NewJob("k", "\0", queue=self.queue)))
        self.assertEqual(self.refused(errors.InvalidValue, lambda tx: tx.cancel("17")).sqlstate, "22P02")
        self.assertEqual(self.refused(errors.NoSuchJob, lambda tx: tx.cancel(uuid.uuid4())).sqlstate, "MP002")
        self.assertEqual(self.refused(errors.NoSuchBatch, lambda tx: tx.start_batch(self.name)).sqlstate, "MP010")
        self.assertEqual(self.refused(errors.NoSuchBulkJob, lambda tx: tx.start_bulk(self.name)).sqlstate, "MP007")

    def test_other_errors_of_the_library_are_raised_unchanged(self):
        with self.assertRaises(Exception) as raised:
            self.in_one(lambda tx: tx.execute("select 1 / 0"))
        self.assertNotIsInstance(raised.exception, MilepostError)

    def test_a_job_is_canceled(self):
        job = self.create()
        self.assertEqual(self.in_one(lambda tx: tx.cancel(job, "twice", grace_ms=1)), ["canceled"])
        self.assertEqual(self.healthy.job(job)["state"], "canceled")
        error = self.refused(errors.WrongState, lambda tx: tx.cancel(job))
        self.assertEqual((error.sqlstate, error.detail), ("MP003", "canceled"))

    def test_events_get_sequences_and_are_emitted_once(self):
        id = str(uuid.uuid4())
        event = NewEvent("order", self.name, "order.paid", {"cents": 1200}, event_id=id, headers={"tenant": "acme"})
        [first, again] = self.in_one(lambda tx: tx.emit(event), lambda tx: tx.emit(event))
        self.assertEqual((first.event_id, first.aggregate_seq, first.duplicate, again.duplicate), (id, 1, False, True))
        [many] = self.in_one(lambda tx: tx.emit_many([NewEvent("order", self.name, "order.sent"), NewEvent("order", self.name, "order.gone")]))
        self.assertEqual([one.aggregate_seq for one in many], [2, 3])
        taken = NewEvent("order", self.name, "order.paid", {"cents": 1}, event_id=id)
        self.assertEqual(self.refused(errors.EventIdTaken, lambda tx: tx.emit(taken)).detail, id)
        late = NewEvent("order", self.name, "order.late", aggregate_seq=9)
        self.assertEqual(self.refused(errors.WrongSequence, lambda tx: tx.emit(late)).detail, "gap 3")
        self.assertEqual(self.refused(errors.InvalidEvent, lambda tx: tx.emit(NewEvent("", "17", "t"))).sqlstate, "MP015")

    def test_an_event_is_received_once(self):
        id = uuid.uuid4()
        once = lambda tx: tx.once(self.name, id)
        with self.assertRaises(ZeroDivisionError):
            self.in_one(once, lambda tx: 1 / 0)
        self.assertEqual(self.in_one(once, once), [True, False])
        self.refused(errors.InvalidInboxCall, lambda tx: tx.once("", id))

    def test_events_are_received_in_order(self):
        now = datetime.now(timezone.utc)
        first, second = (
            Event("order", self.name, seq, str(uuid.uuid4()), "order.paid", {"seq": seq}, {"tenant": "acme"}, now) for seq in (1, 2)
        )
        receive = lambda event: lambda tx: tx.receive(self.name, event)
        parked = lambda tx: tx.next_parked(self.name, "order", self.name)
        [received] = self.in_one(receive(second))
        self.assertEqual(received.verdict, "parked")
        [received, after, end] = self.in_one(receive(first), parked, parked)
        self.assertEqual((received.verdict, received.more, after, end), ("apply", True, second, None))
        self.assertEqual(self.in_one(receive(first))[0].verdict, "duplicate")

    def test_a_batch_is_started(self):
        self.healthy.ask("POST", "/v1/dags", {"name": self.name, "tasks": {"a": {"kind": self.name, "payload": "${ input.n } on ${ tick.date }"}}})
        tick = datetime(2026, 11, 21, 23, 30, tzinfo=timezone.utc)
        start = lambda tx: tx.start_batch(self.name, {"n": 7}, key="k", nominal_at=tick, nominal_zone="Europe/Berlin")
        [first, again] = self.in_one(start, start)
        self.assertEqual((first.duplicate, again.duplicate, again.id), (False, True, first.id))
        [job] = until("the task has its job", lambda: list(self.healthy.jobs(kind=self.name)))
        self.assertEqual(self.healthy.job(job["id"])["payload"], "7 on 2026-11-22")

    def test_a_signal_ends_a_wait(self):
        tasks = {"ask": {"wait": {"signal": "go"}}, "a": {"kind": self.name, "payload": "${ tasks.ask.output }", "after": ["ask"]}}
        self.healthy.ask("POST", "/v1/dags", {"name": self.name, "tasks": tasks})
        [batch] = self.in_one(lambda tx: tx.start_batch(self.name))
        signal = lambda tx: tx.signal(batch.id, "go", {"by": "ann"}, id="1")
        self.assertEqual(self.in_one(signal, signal), ["accepted", "duplicate"])
        [job] = until("the task has its job", lambda: list(self.healthy.jobs(kind=self.name)))
        self.assertEqual(self.healthy.job(job["id"])["payload"], {"by": "ann"})

    def test_a_run_of_a_bulk_job_is_started(self):
        define_bulk(self.healthy)
        start = lambda tx: tx.start_bulk("python_members", {"topic": 4}, key=self.name, start_at=datetime(2099, 1, 1, tzinfo=timezone.utc))
        [first, again] = self.in_one(start, start)
        self.assertEqual((first.duplicate, again.duplicate, again.id), (False, True, first.id))
        self.assertEqual(self.healthy.job(first.id)["payload"], {"topic": 4})
        over_http = self.healthy.start_bulk("python_members", {"topic": 4}, key=self.name, start_at="2099-01-01T00:00:00Z")
        self.assertEqual((over_http.id, over_http.duplicate), (first.id, True))

    def test_a_handler_ends_its_job_in_its_own_transaction(self):
        async def handler(job):
            async with self.transaction() as tx:
                await self.insert(tx)
                await tx.complete(job, {"invoice": 4711})
                if job.attempt == 1:
                    raise ZeroDivisionError
            return "ignored"

        self.run_worker({"k": handler})
        job = self.create()
        self.ended(job, "retry_wait")
        self.assertEqual(self.effects(), 0)
        self.healthy.operate(job, "retry")
        self.assertEqual((self.ended(job)["result"], self.effects()), ({"invoice": 4711}, 1))
        self.assertEqual(self.attempts(job), ["ZeroDivisionError", None])

    def test_a_handler_that_has_lost_its_job_stores_nothing(self):
        raised = []

        async def handler(job):
            try:
                async with self.transaction() as tx:
                    await self.insert(tx)
                    self.healthy.cancel(job.id, grace_ms=0)
                    await asyncio.to_thread(self.ended, job.id, "canceled")
                    await tx.complete(job)
            except Fenced as fenced:
                raised.append(str(fenced))
                raise

        self.run_worker({"k": handler})
        job = self.create()
        [words] = until("the handler is fenced", lambda: raised)
        self.assertIn(f"job {job} no longer runs with the run token 1", words)
        self.assertEqual((self.ended(job, "canceled")["result"], self.effects()), (None, 0))


def define_bulk(client):
    """Stores the bulk job of the tests, as a worker with it in its configuration does."""
    is_stored = lambda: any(one["name"] == "python_members" for one in client.ask("GET", "/v1/bulk-definitions"))
    if is_stored():
        return
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "milepost.toml")
        file.write_text(BULK)
        worker = subprocess.Popen([PROGRAM, "work", "--store", STORE, "--config", file], stderr=subprocess.DEVNULL)
        try:
            until("the bulk job is stored", is_stored)
        finally:
            worker.terminate()
            worker.wait()


class PsycopgTest(SqlCases, Workplace):
    transaction = staticmethod(in_psycopg)


class AsyncPsycopgTest(SqlCases, Workplace):
    transaction = staticmethod(in_async_psycopg)


class CoreTest(SqlCases, Workplace):
    transaction = staticmethod(in_core("psycopg"))


class CoreOnPsycopg2Test(SqlCases, Workplace):
    transaction = staticmethod(in_core("psycopg2"))


class SessionTest(SqlCases, Workplace):
    transaction = staticmethod(in_session)


class AsyncConnectionTest(SqlCases, Workplace):
    transaction = staticmethod(in_async(lambda engine: engine.begin()))


class AsyncSessionTest(SqlCases, Workplace):
    transaction = staticmethod(in_async(async_session))


class OtherDatabaseTest(Workplace):
    def test_a_database_without_the_tables_is_reported_with_the_remedy(self):
        with psycopg.connect(STORE, dbname="template1") as connection, self.assertRaises(errors.NotMigrated) as refused:
            milepost.psycopg.enqueue(connection, NewJob("k"))
        self.assertIn("run `milepost migrate`", str(refused.exception))


if __name__ == "__main__":
    unittest.main()
