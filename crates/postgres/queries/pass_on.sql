-- Tells the other processes that there is work.
select pg_notify('milepost_wake', 'ready')
