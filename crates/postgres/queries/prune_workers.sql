-- Deletes up to $2 workers that ended more than $1 ms ago and hold no jobs.
with due as materialized (
    select w.id from milepost.worker w
    where w.ended_at is not null and w.ended_at < now() - $1::bigint * interval '1 millisecond'
      and not exists (select from milepost.live l where l.worker_id = w.id)
    order by w.ended_at
    limit $2
    for update skip locked
)
delete from milepost.worker w using due where w.id = due.id
