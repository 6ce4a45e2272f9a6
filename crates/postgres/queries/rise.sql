-- Wakes up: from now on enqueuers need not notify.
select pg_advisory_unlock(19792, 1)
