-- Wakes up: from now on others need not notify.
select pg_advisory_unlock(19792, $1)
