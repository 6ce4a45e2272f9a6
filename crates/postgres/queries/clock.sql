-- The current time, and the next tick of all schedules.
select now(), (select min(next_at) from milepost.schedule where paused_at is null)
