-- The age in seconds of the oldest transaction that holds back vacuum in this database.
select coalesce(extract(epoch from max(clock_timestamp() - since)), 0)::float8
from (
    select xact_start as since from pg_stat_activity
    where backend_xmin is not null and pid <> pg_backend_pid() and datname = current_database()
    union all
    select prepared from pg_prepared_xacts where database = current_database()
) open
