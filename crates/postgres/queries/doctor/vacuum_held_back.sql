-- Snapshots of sessions, prepared transactions and replication slots that are older than ten times the patience. $1 the
-- check's parameters
select count(*) over () as count, h.what, h.detail
from (
    select 'session ' || pid as what, 'snapshot since ' || since::timestamptz(0) || ', ' || coalesce(state, backend_type) || ', ' || coalesce(application_name, '') as detail
    from pg_catalog.pg_stat_activity
    -- A standby that sends its horizon has no transaction, and a session may not report its own (track_activities). Any
    -- other process with a snapshot and without a transaction is between two transactions.
    cross join lateral (select coalesce(xact_start, case when backend_type = 'walsender' or state = 'disabled' then backend_start end)) s(since)
    where backend_xmin is not null and since < now() - 10 * ($1::jsonb ->> 'patience_ms')::bigint * interval '1 millisecond' and pid <> pg_backend_pid()
    union all
    select 'prepared transaction ' || gid, 'since ' || prepared::timestamptz(0)
    from pg_catalog.pg_prepared_xacts
    where prepared < now() - 10 * ($1::jsonb ->> 'patience_ms')::bigint * interval '1 millisecond'
    union all
    select 'replication slot ' || slot_name, 'inactive, but keeps vacuum from removing rows'
    from pg_catalog.pg_replication_slots
    where not active and coalesce(xmin, catalog_xmin) is not null
) h
order by h.what
limit 10
