-- Start of bulk jobs. Public: start_bulk. It joins the caller's transaction.

-- Starts a bulk job: a job of the definition's kind, in its group, with the definition's settings. payload: its parameters.
-- Another call with the same key returns the same job with duplicate = true. MP001: a parameter that its SQL uses is missing. MP007: the
-- definition does not exist. MP008: its targets come from a file.
create or replace function milepost.start_bulk(
    name text, payload jsonb default '{}', key text default null, run_at timestamptz default null,
    priority int default null, traceparent text default null
) returns table (job_id uuid, duplicate boolean) language plpgsql security definer
set search_path = pg_catalog, pg_temp as $$
declare
    d milepost.bulk_definition;
    missing text;
begin
    select * into d from milepost.bulk_definition b where b.name = start_bulk.name;
    if not found then
        raise exception using errcode = 'MP007', message = format('there is no bulk job named %L', start_bulk.name),
            hint = 'it is registered when a worker starts that has it in its configuration: add it and run `milepost work`';
    end if;
    if d.columns is not null then
        raise exception using errcode = 'MP008', message = format('the bulk job %L takes its targets from a file', start_bulk.name),
            hint = 'start it with `milepost bulk start --from FILE`';
    end if;
    select p.name into missing from jsonb_object_keys(d.statements -> 'parameters') as p(name)
    where (jsonb_typeof(start_bulk.payload) = 'object' and start_bulk.payload ? p.name) is not true order by p.name limit 1;
    if found then
        raise exception using errcode = 'MP001',
            message = format('the payload has no %L, which the SQL of the bulk job uses as :%s', missing, missing);
    end if;
    return query
        select e.job_id, e.duplicate
        from milepost.enqueue_many(
            kinds => array[d.name], payloads => array[start_bulk.payload], keys => array[start_bulk.key],
            queues => array[d.queue], priorities => array[coalesce(start_bulk.priority, d.priority)],
            groups => array[d.group_key], run_ats => array[start_bulk.run_at],
            max_attempts => array[d.max_attempts], traceparents => array[start_bulk.traceparent]) e;
end
$$;

-- Runs with the rights of its owner, so that an application needs no rights on tables; executable only by roles that are
-- granted it.
revoke execute on function milepost.start_bulk from public;
