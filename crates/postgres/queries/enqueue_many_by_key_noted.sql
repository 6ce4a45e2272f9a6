-- Enqueues jobs as enqueue_many_by_key does ($1 to $14), and records those that were created or replaced in the audit log, in one statement: $15
-- who, $16 what, $17 subject, $18 reason. The detail is the same as the library would write.
with made as materialized (
    select m.job_id, m.outcome, m.kind, m.ord
    from rows from (
        milepost.enqueue_many_by_key($1::text[], $2::text[]::jsonb[], $14::text[]::jsonb[], $3::text[], $4::text[], $5::int[], $6::text[],
                                $7::timestamptz[], $8::bigint[], $9::int[], $10::bigint[], $11::uuid[], null,
                                $12::timestamptz[], $13::text[]),
        unnest($1::text[])) with ordinality m(job_id, outcome, kind, ord)
),
changed as materialized (
    select job_id, outcome, kind, ord from made where outcome in ('created', 'replaced', 'moved')
),
listed as (
    select job_id, kind, ord from changed order by ord limit 1000
),
known as (
    select jsonb_agg(distinct kind) as kinds, jsonb_agg(job_id order by ord) as ids,
           (select count(*) from changed where outcome <> 'created') as replaced
    from listed
),
noted as (
    insert into milepost.audit (who, what, subject, why, detail)
    select $15, $16, $17, $18, jsonb_build_object('after', jsonb_build_object(
        'jobs', (select count(*) from changed),
        'kinds', case when octet_length(k.kinds::text) > 2000 then jsonb_build_object('bytes', octet_length(k.kinds::text))
                 else k.kinds end,
        'ids', k.ids) || case when k.replaced > 0 then jsonb_build_object('replaced', k.replaced) else '{}' end)
    from known k
    where k.ids is not null
)
select job_id, outcome from made order by ord
