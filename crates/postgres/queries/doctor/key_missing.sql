-- Tables without their primary key, unique indexes that are missing, and indexes that are not valid.
select count(*) over () as count, o.what, o.detail
from (
    select c.relname::text as what, 'no primary key' as detail
    from pg_catalog.pg_class c
    -- These two have none.
    where c.relnamespace = 'milepost'::regnamespace and c.relkind in ('r', 'p') and c.relname not in ('history', 'group_note')
      and not exists (select from pg_catalog.pg_constraint k where k.conrelid = c.oid and k.contype = 'p')
    union all
    select u.name, 'a missing unique index'
    from (values ('access_token_name'), ('alert_incident_open'), ('batch_key'), ('console_session_former_id_key'), ('dag_task_key'), ('dag_version_name_number_key'),
                 ('dag_version_name_version_key'), ('event_aggregate_type_aggregate_id_aggregate_seq_key'), ('event_event_id_key'),
                 ('group_slot_job_id_key'), ('inbox_dead_event')) u(name)
    where not exists (
        select from pg_catalog.pg_index i join pg_catalog.pg_class c on c.oid = i.indexrelid
        where c.relnamespace = 'milepost'::regnamespace and c.relname = u.name and i.indisunique
    )
    union all
    select c.relname::text, 'an index that is not valid'
    from pg_catalog.pg_index i
    join pg_catalog.pg_class c on c.oid = i.indexrelid
    -- Not those that REINDEX CONCURRENTLY builds beside the valid ones.
    where c.relnamespace = 'milepost'::regnamespace and not i.indisvalid and c.relname !~ '_cc(new|old)[0-9]*$'
) o
order by o.what
limit 10
