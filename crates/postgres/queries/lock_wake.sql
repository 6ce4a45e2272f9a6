-- Takes a lock of a wake-up handshake for this session, unless somebody holds it: that of its waker, or that of a waker that falls
-- asleep, from which on others notify.
select pg_try_advisory_lock(19792, $1)
