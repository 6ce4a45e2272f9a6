-- Tables that autovacuum does not process.
select count(*) over () as count, o.what, o.detail
from (
    select 'the server' as what, 'autovacuum = off' as detail where current_setting('autovacuum') = 'off'
    union all
    select c.relname::text, option
    from pg_catalog.pg_class c
    cross join unnest(c.reloptions) option
    where c.relnamespace = 'milepost'::regnamespace and option in ('autovacuum_enabled=false', 'autovacuum_enabled=off')
) o
order by o.what
limit 10
