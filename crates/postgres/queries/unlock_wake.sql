-- Releases the lock of a sleeping waker: from now on other transactions need not notify.
select pg_advisory_unlock(19792, $1)
