-- Pauses a subscription until an operator resumes it.
update milepost.subscription set paused_at = coalesce(paused_at, clock_timestamp()), paused_why = $2 where name = $1
