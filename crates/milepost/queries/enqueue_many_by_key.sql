-- Enqueues jobs of which some have rules for duplicates. $1: a list of objects, as JSON text, each with the members of a job. The caller
-- has checked the payloads.
select coalesce(json_agg(json_build_object('job', made.job_id, 'duplicate', made.outcome <> 'created',
           'outcome', made.outcome) order by made.ord), '[]')::text as answer
from (
    select coalesce(array_agg(j.job ->> 'kind' order by j.ord), '{}') as kinds,
           coalesce(array_agg((j.job -> 'payload')::text::jsonb order by j.ord), '{}') as payloads,
           coalesce(array_agg((j.job ->> 'on_duplicate')::jsonb order by j.ord), '{}') as on_duplicates,
           coalesce(array_agg(j.job ->> 'key' order by j.ord), '{}') as keys,
           coalesce(array_agg(j.job ->> 'queue' order by j.ord), '{}') as queues,
           coalesce(array_agg((j.job ->> 'priority')::int order by j.ord), '{}') as priorities,
           coalesce(array_agg(j.job ->> 'group' order by j.ord), '{}') as groups,
           coalesce(array_agg((j.job ->> 'run_at')::timestamptz order by j.ord), '{}') as run_ats,
           coalesce(array_agg((j.job ->> 'delay_ms')::bigint order by j.ord), '{}') as delays_ms,
           coalesce(array_agg((j.job ->> 'max_attempts')::int order by j.ord), '{}') as max_attempts,
           coalesce(array_agg((j.job ->> 'timeout_ms')::bigint order by j.ord), '{}') as timeouts_ms,
           coalesce(array_agg((j.job ->> 'id')::uuid order by j.ord), '{}') as ids,
           coalesce(array_agg((j.job ->> 'nominal_at')::timestamptz order by j.ord), '{}') as nominal_ats,
           coalesce(array_agg(j.job ->> 'traceparent' order by j.ord), '{}') as traceparents
    from json_array_elements($1::text::json) with ordinality j(job, ord)
) a
cross join lateral milepost.enqueue_many_by_key(
    a.kinds, a.payloads, a.on_duplicates, a.keys, a.queues, a.priorities, a.groups, a.run_ats, a.delays_ms, a.max_attempts, a.timeouts_ms, a.ids, null,
    a.nominal_ats, a.traceparents
) with ordinality made(job_id, outcome, ord)
