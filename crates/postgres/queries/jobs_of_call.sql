-- The jobs that stand for those of an earlier call, which a failover does not take back: $1 ids, $2 kinds, $3 keys, aligned; null where
-- none does.
select coalesce(k.job_id, j.id)
from milepost.confirm_replication() confirmed
cross join unnest($1::uuid[], $2::text[], $3::text[]) with ordinality as i(id, kind, key, ord)
left join milepost.job_key k on k.kind = i.kind and k.key = i.key
left join milepost.job j on j.id = i.id
order by i.ord
