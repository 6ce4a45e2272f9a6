"""Calls Milepost's SQL functions like an application in another language: client.py URL.

Uses psycopg (3) or psycopg2, whichever is installed. Exits with a traceback if an answer is wrong.
Prints the ids of the jobs that must run, one per line.
"""

import json
import sys
import uuid

try:
    import psycopg as driver
except ImportError:
    import psycopg2 as driver


def sqlstate(error):
    return getattr(error, "sqlstate", None) or getattr(error, "pgcode", None)


def refused(connection, state, statement, values=()):
    """Asserts that the statement fails with this SQLSTATE, and rolls the transaction back."""
    try:
        with connection.cursor() as cursor:
            cursor.execute(statement, values)
    except driver.Error as error:
        assert sqlstate(error) == state, f"{statement}: {sqlstate(error)} instead of {state}: {error}"
        connection.rollback()
        return str(error)
    raise AssertionError(f"{statement} was not refused")


def one(connection, statement, values=()):
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return cursor.fetchone()


def events(connection):
    """Emits events in the same transaction as a row of the application."""
    emit = "select event_id, aggregate_seq, duplicate from milepost.emit('order', %s, %s, %s::json, event_id => %s)"
    payload, event = json.dumps({"cents": 1200, "text": "naïve ☃"}), str(uuid.uuid4())
    with connection.cursor() as cursor:
        cursor.execute("create table public.orders (id text primary key, paid boolean)")
        cursor.execute("insert into public.orders values ('17', true)")
    made = one(connection, emit, ("17", "order.paid", payload, event))
    assert (str(made[0]), made[1:]) == (event, (1, False))
    connection.commit()
    again = one(connection, emit, ("17", "order.paid", json.dumps(json.loads(payload), indent=2), event))
    assert again[1:] == (1, True), "the same id and content is the same event"
    rolled_back = one(connection, emit, ("17", "order.shipped", "{}", None))
    assert uuid.UUID(str(rolled_back[0])).version == 7 and rolled_back[1:] == (2, False)
    connection.rollback()
    assert one(connection, emit, ("17", "order.shipped", "{}", None))[1] == 2, "it took no number"
    connection.commit()

    many = "select aggregate_seq from milepost.emit_many(%s::text[], %s::text[], %s::text[], %s::text[]::json[])"
    with connection.cursor() as cursor:
        cursor.execute(many, (["order"] * 3, ["18", "17", "18"], ["a", "b", "c"], ["1", "2", "3"]))
        assert cursor.fetchall() == [(1,), (3,), (2,)], "answers come in the order of the call"
    connection.commit()
    assert one(connection, "select payload::text from milepost.event where event_id = %s", (event,)) == (payload,)

    refused(connection, "MP017", emit, ("17", "order.paid", "{}", event))
    refused(connection, "MP015", emit, ("", "order.paid", "{}", None))
    why = refused(connection, "MP016", "select milepost.emit('order', '17', 'x', aggregate_seq => 9)")
    assert "order/17 is at sequence 3" in why, why


def main(url):
    connection = driver.connect(url)
    run = []

    payload = json.dumps({"to": "ada@example.org", "text": "naïve ☃"})
    job, duplicate = one(connection, "select * from milepost.enqueue('runtime', %s::jsonb, key => %s)", (payload, "k1"))
    assert not duplicate
    again, duplicate = one(connection, "select * from milepost.enqueue('runtime', %s::jsonb, key => %s)", ("{}", "k1"))
    assert (again, duplicate) == (job, True), "the same key is the same job"
    assert uuid.UUID(str(job)).version == 7
    connection.commit()
    run.append(job)

    rolled_back, _ = one(connection, "select * from milepost.enqueue('runtime', '{}')")
    connection.rollback()
    found = one(connection, "select count(*) from milepost.job where id = %s", (rolled_back,))
    assert found == (0,), "it left with the transaction"

    many = "select job_id, duplicate from milepost.enqueue_many(%s::text[], %s::text[]::jsonb[], keys => %s::text[])"
    with connection.cursor() as cursor:
        cursor.execute(many, (["runtime"] * 3, ['{"n": 1}', '{"n": 2}', '{"n": 3}'], [None, "k1", "k2"]))
        made = cursor.fetchall()
    connection.commit()
    assert [duplicate for _, duplicate in made] == [False, True, False]
    assert made[1][0] == job, "answers come in the order of the call"
    run += [made[0][0], made[2][0]]

    later, _ = one(connection, "select * from milepost.enqueue('runtime', '{}', run_at => now() + interval '1 hour')")
    assert one(connection, "select milepost.cancel(%s, 'no longer wanted')", (later,)) == ("canceled",)
    note = "select note from milepost.history where job_id = %s and verb = 'cancel'"
    assert one(connection, note, (later,)) == ("no longer wanted",)
    connection.commit()

    refused(connection, "MP003", "select milepost.cancel(%s)", (later,))
    refused(connection, "MP002", "select milepost.cancel(%s)", (str(uuid.uuid4()),))
    refused(connection, "MP001", "select * from milepost.enqueue('', '{}')")
    refused(connection, "MP001", "select * from milepost.enqueue('runtime', '{}', priority => 9)")
    why = refused(connection, "MP001", many, (["runtime", ""], ["{}", "{}"], [None, None]))
    assert "job 1 of the call" in why, why
    refused(connection, "MP001", many, (["runtime"], ["{}", "{}"], [None, None]))
    refused(connection, "22P02", "select * from milepost.enqueue('runtime', '{not json')")

    events(connection)
    connection.close()
    print("\n".join(str(job) for job in run))


main(sys.argv[1])
