-- Tries to take a lock of a wake-up handshake for this session: that of the waker, or that of a waker that falls asleep,
-- from which on other transactions notify.
select pg_try_advisory_lock(19792, $1)
