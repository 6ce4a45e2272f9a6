-- Stops the ticks of schedule $1.
update milepost.schedule set paused_at = now(), version = version + 1 where name = $1 and paused_at is null
