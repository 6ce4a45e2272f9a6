-- The sessions in transactions that use tables of Milepost, the oldest three, in words (null: none): those for which a migration may wait.
select string_agg(described, '; ') as sessions from (
    select format('session %s of %s%s, in a transaction for %s s', a.pid, a.usename,
               coalesce(' (' || nullif(a.application_name, '') || ')', ''), round(extract(epoch from now() - a.xact_start))) as described
    from pg_catalog.pg_stat_activity a
    where a.datname = current_database() and a.pid <> pg_backend_pid() and exists (
        select from pg_catalog.pg_locks l join pg_catalog.pg_class c on c.oid = l.relation
        where l.pid = a.pid and l.granted and l.database = (select oid from pg_catalog.pg_database where datname = current_database())
          and c.relnamespace = 'milepost'::regnamespace)
    order by a.xact_start limit 3) oldest
