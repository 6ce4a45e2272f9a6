-- Resumes schedule $1, if it still has version $2, with tick $3.
update milepost.schedule set paused_at = null, next_at = $3, version = version + 1
where name = $1 and version = $2 and paused_at is not null
