-- Declares worker $1 dead.
update milepost.worker set ended_at = now(), died = true where id = $1 and ended_at is null
