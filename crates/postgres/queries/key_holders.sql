-- The jobs that hold keys, with their queue, group and payload unless they were deleted: $1 kinds, $2 keys, parallel arrays;
-- nulls if no job holds the key. Each key is looked up separately, so that the size of the tables does not matter.
select h.job_id, h.queue, h.group_key, h.payload
from unnest($1::text[], $2::text[]) with ordinality as i(kind, key, ord)
left join lateral (
    select k.job_id, j.queue, j.group_key, j.payload::text
    from milepost.job_key k
    left join milepost.job j on j.id = k.job_id
    where k.kind = i.kind and k.key = i.key
    limit 1
) h on true
order by i.ord
