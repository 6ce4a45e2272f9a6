-- The existing jobs for those of an earlier call, by commits that a failover does not undo: $1 ids, $2 kinds, $3 keys,
-- parallel arrays; null for those that do not exist.
select coalesce(k.job_id, j.id)
from milepost.confirm_replication() confirmed
cross join unnest($1::uuid[], $2::text[], $3::text[]) with ordinality as i(id, kind, key, ord)
left join milepost.job_key k on k.kind = i.kind and k.key = i.key
left join milepost.job j on j.id = i.id
order by i.ord
