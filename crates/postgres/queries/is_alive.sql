-- Whether worker $1 still has its lease.
select exists (select from milepost.worker where id = $1 and ended_at is null and lease_expires_at > now())
