-- Falls asleep, unless an enqueuer has its transaction open: from now on enqueuers notify.
select pg_try_advisory_lock(19792, 1)
