-- Enqueues jobs as enqueue_many does ($1 to $13), and records the new ones in the audit log, in one statement: $14 who, $15
-- what, $16 subject, $17 reason. Without new jobs there is no entry. The detail is the same as the library would write.
with made as materialized (
    -- Results are in the order of the call, so the kinds are matched without a join.
    select m.job_id, m.duplicate, m.kind, m.ord
    from rows from (
        milepost.enqueue_many($1::text[], $2::text[]::jsonb[], $3::text[], $4::text[], $5::int[], $6::text[],
                              $7::timestamptz[], $8::bigint[], $9::int[], $10::bigint[], $11::uuid[], null,
                              $12::timestamptz[], $13::text[]),
        unnest($1::text[])) with ordinality m(job_id, duplicate, kind, ord)
),
listed as (
    select job_id, kind, ord from made where not duplicate order by ord limit 1000
),
known as (
    select jsonb_agg(distinct kind) as kinds, jsonb_agg(job_id order by ord) as ids from listed
),
noted as (
    insert into milepost.audit (who, what, subject, why, detail)
    select $14, $15, $16, $17, jsonb_build_object('after', jsonb_build_object(
        'jobs', (select count(*) from made where not duplicate),
        'kinds', case when octet_length(k.kinds::text) > 2000 then jsonb_build_object('bytes', octet_length(k.kinds::text))
                 else k.kinds end,
        'ids', k.ids))
    from known k
    where k.ids is not null
)
select job_id, duplicate from made order by ord
