"""Tests inside Django, as an application has them: with a test database, and a transaction around each test."""

from unittest import mock

import milepost.django
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.test import TestCase, override_settings
from milepost import Fenced, Job, NewEvent, NewJob, errors, sql
from milepost.django import Settings, enqueue, handlers
from milepost.django.management.commands.milepost_migrate import store_url

from .milepost_jobs import Bill, bill
from .models import Invoice, Order


def jobs(kind):
    with connection.cursor() as cursor:
        cursor.execute("select payload from milepost.job where kind = %s", [kind])
        return [payload for [payload] in cursor.fetchall()]


class OrdersTest(TestCase):
    def test_a_job_is_created_in_the_current_transaction(self):
        with self.assertRaises(ZeroDivisionError), transaction.atomic():
            enqueue(bill.job(Bill(16)))
            raise ZeroDivisionError
        with transaction.atomic():
            order = Order.objects.create(email="100%@example.org")
            first, again = (enqueue(bill.job(Bill(order.pk), key=f"order-{order.pk}")) for _ in range(2))
        self.assertEqual((first.duplicate, again.duplicate, again.id), (False, True, first.id))
        self.assertEqual(jobs("bill"), ['{"order": %d}' % order.pk])

    def test_all_functions_use_the_connection(self):
        created = milepost.django.enqueue_many([NewJob("k", "100%"), NewJob("k", {"at": None})])
        self.assertEqual(len(jobs("k")), 2)
        self.assertEqual(milepost.django.cancel(created[0].id), "canceled")
        self.assertEqual(milepost.django.emit(NewEvent("order", "17", "order.paid")).aggregate_seq, 1)
        self.assertEqual(milepost.django.emit_many([NewEvent("order", "17", "order.sent")])[0].aggregate_seq, 2)
        self.assertEqual([milepost.django.once("mailer", created[0].id) for _ in range(2)], [True, False])
        event = sql.Event("order", "17", 1, created[0].id, "order.paid")
        self.assertEqual(milepost.django.receive("billing", event).verdict, "apply")
        self.assertIsNone(milepost.django.next_parked("billing", "order", "17"))

    def test_errors_have_their_class_and_undo_a_savepoint(self):
        calls = {
            errors.InvalidJob: lambda: enqueue(NewJob("")), errors.NoSuchBulkJob: lambda: milepost.django.start_bulk("none"),
            errors.NoSuchBatch: lambda: milepost.django.start_batch("none"), errors.InvalidValue: lambda: enqueue(NewJob("k", "\0")),
        }
        for kind, call in calls.items():
            with self.assertRaises(kind), transaction.atomic():
                call()
        self.assertEqual(jobs("k"), [])

    def test_a_handler_is_called_like_a_function(self):
        order = Order.objects.create(email="ada@example.org")
        job = mock.Mock(spec=Job, id="0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c", run_token=1, attempt=2, payload={"order": order.pk})
        with self.assertRaises(Fenced):
            bill(job)
        self.assertEqual(Invoice.objects.count(), 0)

    def test_sqlite_has_no_functions(self):
        with self.assertRaisesRegex(ImproperlyConfigured, "the SQL functions need PostgreSQL, and the database 'file' is sqlite"):
            milepost.django.run(sql.enqueue(NewJob("k")), using="file")

    @override_settings(MILEPOST={"URI": "http://127.0.0.1:7070"})
    def test_an_unknown_setting_is_reported(self):
        with self.assertRaisesRegex(ImproperlyConfigured, "unknown setting 'URI'; known ones: URL, TOKEN"):
            Settings.read()

    def test_a_worker_without_handlers_is_reported(self):
        with mock.patch.dict(handlers, clear=True), self.assertRaisesRegex(CommandError, "there are no handlers; add a module milepost_jobs.py"):
            call_command("milepost_worker")

    def test_the_address_of_a_database_has_all_its_parts(self):
        database = {
            "ENGINE": "django.db.backends.postgresql", "NAME": "my shop", "HOST": "/run/pg", "PORT": 5433, "USER": "a@b", "PASSWORD": "p/w &",
            "OPTIONS": {"sslmode": "require", "pool": True},
        }
        expected = "postgres:///my%20shop?host=%2Frun%2Fpg&port=5433&user=a%40b&password=p%2Fw%20%26&sslmode=require"
        self.assertEqual(store_url(database), expected)
