-- How many locks are being waited for.
select count(*) from pg_locks where not granted
