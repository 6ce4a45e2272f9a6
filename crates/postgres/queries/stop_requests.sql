-- Runs of worker $1 that somebody asked to stop. Read off live_stop, which is small; live_worker would walk all
-- that the worker ever held while a snapshot keeps it.
with asked as materialized (
    select id, token, worker_id, stop_verb from milepost.live
    where stop_at is not null
    order by stop_at
    limit 100000
)
select id, token, stop_verb::text as verb from asked where worker_id = $1
