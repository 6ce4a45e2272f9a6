-- Becomes the one waker of the database, for as long as this session lasts.
select pg_try_advisory_lock(19792, 2)
