-- Transactions without a snapshot that are older than ten times the patience. $1 the check's parameters
select count(*) over () as count, 'session ' || pid as what,
       'since ' || xact_start::timestamptz(0) || ', ' || coalesce(state, '') || ', ' || coalesce(application_name, '') as detail
from pg_catalog.pg_stat_activity
where datname = current_database() and backend_xmin is null and xact_start < now() - 10 * ($1::jsonb ->> 'patience_ms')::bigint * interval '1 millisecond' and pid <> pg_backend_pid()
order by what
limit 10
