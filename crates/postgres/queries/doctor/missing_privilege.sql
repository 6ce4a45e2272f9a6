-- Tables to which this role may not do all that a worker does.
select count(*) over () as count, c.relname::text as what,
       current_user || ' may not ' || string_agg(p.privilege, ', ' order by p.privilege) as detail
from pg_catalog.pg_class c
cross join unnest(array['select', 'insert', 'update', 'delete']) p(privilege)
where c.relnamespace = 'milepost'::regnamespace and c.relkind = 'r'
  -- What the migrator, the server and the relay alone write.
  and c.relname not in ('schema_migration', 'transition', 'arrival', 'arrival_part', 'access_token', 'console_session', 'subscription',
                        'publisher', 'subscription_slot', 'slot_position', 'parked_aggregate', 'parked_event', 'dead_event',
                        'change_source', 'epoch')
  and not (c.relname = 'audit' and p.privilege in ('select', 'update'))
  and not has_table_privilege(c.oid, p.privilege)
group by c.relname
order by what
limit 10
