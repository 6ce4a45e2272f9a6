-- The sessions that use tables of Milepost or hold the lock of migrations, the oldest three, in words (null: none): those for which a migration may
-- wait.
select string_agg(described, '; ') as sessions from (
    select format('session %s of %s%s, %s for %s s', a.pid, a.usename,
               coalesce(' (' || nullif(a.application_name, '') || ')', ''),
               case when a.xact_start is null then 'idle' else 'in a transaction' end, round(extract(epoch from now() - coalesce(a.xact_start, a.state_change)))) as described
    from pg_catalog.pg_stat_activity a
    where a.datname = current_database() and a.pid <> pg_backend_pid() and exists (
        select from pg_catalog.pg_locks l left join pg_catalog.pg_class c on c.oid = l.relation
        where l.pid = a.pid and l.granted and l.database = (select oid from pg_catalog.pg_database where datname = current_database())
          and (c.relnamespace = pg_catalog.to_regnamespace('milepost')
               -- The lock of migrations.
               or (l.locktype = 'advisory' and l.classid = 19792 and l.objid = 3 and l.objsubid = 2)))
    order by coalesce(a.xact_start, a.state_change) limit 3) oldest
