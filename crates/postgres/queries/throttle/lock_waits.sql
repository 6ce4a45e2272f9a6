-- The number of lock requests that wait in this database.
select count(*) from pg_locks l join pg_stat_activity a on a.pid = l.pid
where not l.granted and a.datname = current_database()
