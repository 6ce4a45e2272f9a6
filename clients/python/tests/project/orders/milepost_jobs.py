from dataclasses import dataclass

from django.db import connection, transaction

from milepost import Job
from milepost.django import complete, handler

from .models import Invoice, Order


@dataclass
class Bill:
    order: int


@handler("bill", max_attempts=2)
def bill(job: Job[Bill]):
    """Stores an invoice, and ends its job in the same transaction. The first attempt fails after both."""
    with transaction.atomic():
        invoice = Invoice.objects.create(order_id=job.payload.order)
        complete(job, {"invoice": invoice.pk})
        if job.attempt == 1:
            raise RuntimeError("after complete")


@handler("count")
async def count(job: Job):
    return await Order.objects.filter(email=job.payload).acount()


@handler("server_process")
def server_process(job: Job):
    """Returns the process of the server that serves this thread's connection."""
    with connection.cursor() as cursor:
        cursor.execute("select pg_backend_pid()")
        return cursor.fetchone()[0]
