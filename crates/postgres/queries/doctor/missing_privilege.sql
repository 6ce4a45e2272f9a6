-- Tables and functions for which this role lacks privileges that a worker needs.
select count(*) over () as count, m.what,
       current_user || ' may not ' || string_agg(m.privilege, ', ' order by m.privilege) as detail
from (
    select c.relname::text as what, p.privilege
    from pg_catalog.pg_class c
    cross join unnest(array['select', 'insert', 'update', 'delete']) p(privilege)
    where c.relnamespace = 'milepost'::regnamespace and c.relkind = 'r'
      -- Written only by the migrator, the server and the relay.
      and c.relname not in ('schema_migration', 'transition', 'arrival', 'arrival_part', 'access_token', 'console_session', 'console_sign_in', 'subscription',
                            'publisher', 'subscription_slot', 'slot_position', 'parked_aggregate', 'parked_event', 'dead_event',
                            'change_source', 'epoch', 'timeline', 'alert_incident', 'alert_notice', 'alert_silence', 'alert_target')
      and case when c.relname = 'audit' then p.privilege = 'insert' and not has_column_privilege(c.oid, 'who', 'insert')
               -- The relay writes it; retention deletes its rows with their events.
               when c.relname = 'event_work' then p.privilege in ('select', 'delete') and not has_table_privilege(c.oid, p.privilege)
               else not has_table_privilege(c.oid, p.privilege) end
    union all
    -- Functions with their owner's rights, except those of triggers and the relay's.
    select p.proname::text, 'execute'
    from pg_catalog.pg_proc p
    where p.pronamespace = 'milepost'::regnamespace and p.prosecdef and p.prorettype <> 'trigger'::regtype
      and p.proname <> 'switch_recording' and not has_function_privilege(p.oid, 'execute')
) m
group by m.what
order by m.what
limit 10
