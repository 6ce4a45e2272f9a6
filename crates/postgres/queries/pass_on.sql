-- Notifies the other processes that there is work.
select pg_notify($1, 'ready')
