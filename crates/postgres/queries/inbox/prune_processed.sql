-- Deletes up to $2 ids of events that consumers processed more than $1 ms ago.
with due as materialized (
    select consumer, event_id from milepost.processed_event
    where processed_at < now() - $1::bigint * interval '1 millisecond'
    order by processed_at
    limit $2
    for update skip locked
)
delete from milepost.processed_event p using due where p.consumer = due.consumer and p.event_id = due.event_id
