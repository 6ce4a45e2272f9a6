-- Whether all transactions that were writing in this database at the time of snapshot $1 have ended, and the sessions of
-- those that have not. A transaction that is not known to belong to another database may write in this one.
with late as materialized (
    select x::xid as xid
    from pg_snapshot_xip(pg_current_snapshot()) x
    where x < pg_snapshot_xmax($1::text::pg_snapshot)
)
select not exists (
           select 1 from late
           where not exists (select 1 from pg_stat_activity a
                             where a.backend_xid = late.xid and a.datname <> current_database())
             and not exists (select 1 from pg_prepared_xacts p
                             where p.transaction = late.xid and p.database <> current_database())
       ) as passed,
       (select string_agg(a.pid::text, ', ' order by a.xact_start)
        from late join pg_stat_activity a on a.backend_xid = late.xid and a.datname = current_database()) as sessions,
       (select string_agg(quote_literal(p.gid), ', ' order by p.prepared)
        from late join pg_prepared_xacts p on p.transaction = late.xid and p.database = current_database()) as prepared
