-- Runs of worker $1 that were asked to stop. Read from the index live_stop, which is small; while an old snapshot is held, a
-- scan of live_worker would visit all jobs that the worker ever held.
with asked as materialized (
    select id, token, worker_id, stop_verb from milepost.live
    where stop_at is not null
    order by stop_at
    limit 100000
)
select id, token, stop_verb::text as verb from asked where worker_id = $1
