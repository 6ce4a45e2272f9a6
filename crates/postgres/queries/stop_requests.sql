-- Runs of worker $1 that somebody asked to stop.
select id, token, stop_verb::text as verb from milepost.live where worker_id = $1 and stop_at is not null
