-- Deletes periods of $1 seconds that are older than $2 seconds, and those of a clock that was ahead.
delete from milepost.rollup
where step_s = $1::int and starts_at < now() - make_interval(secs => $2::int) or starts_at > now() + interval '1 day'
