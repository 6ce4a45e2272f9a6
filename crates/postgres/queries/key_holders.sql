-- The jobs that hold the keys of others, and whether they were asked for with the same: $1 kinds, $2 keys, $3 queues, $4 groups, $5 payloads
-- (JSON text), aligned. Nulls: nobody holds the key; the job that does is forgotten. Each key is looked up by itself, however large the tables.
select h.job_id, h.is_same
from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[]::jsonb[])
     with ordinality as i(kind, key, queue, grp, payload, ord)
left join lateral (
    select k.job_id,
           (select j.queue = i.queue and j.group_key is not distinct from i.grp and j.payload = i.payload
            from milepost.job j where j.id = k.job_id) as is_same
    from milepost.job_key k
    where k.kind = i.kind and k.key = i.key
    limit 1
) h on true
order by i.ord
