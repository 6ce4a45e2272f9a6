-- Tables without their primary key, and indexes that are not valid.
select count(*) over () as count, o.what, o.detail
from (
    select c.relname::text as what, 'no primary key' as detail
    from pg_catalog.pg_class c
    -- These two have none.
    where c.relnamespace = 'milepost'::regnamespace and c.relkind in ('r', 'p') and c.relname not in ('history', 'group_note')
      and not exists (select from pg_catalog.pg_constraint k where k.conrelid = c.oid and k.contype = 'p')
    union all
    select c.relname::text, 'an index that is not valid'
    from pg_catalog.pg_index i
    join pg_catalog.pg_class c on c.oid = i.indexrelid
    -- Not those that REINDEX CONCURRENTLY builds beside the valid ones.
    where c.relnamespace = 'milepost'::regnamespace and not i.indisvalid and c.relname !~ '_cc(new|old)[0-9]*$'
) o
order by o.what
limit 10
