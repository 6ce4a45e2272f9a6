-- Ends worker $1, which holds no jobs any more.
update milepost.worker set ended_at = now() where id = $1 and ended_at is null
