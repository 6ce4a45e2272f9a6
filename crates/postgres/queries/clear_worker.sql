-- Records that worker $1, which has ended and is locked, holds no jobs any more.
update milepost.worker set cleared_at = now()
where id = $1 and ended_at is not null and not exists (select from milepost.live where worker_id = $1)
