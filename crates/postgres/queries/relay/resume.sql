-- Lets a paused subscription go on.
update milepost.subscription set paused_at = null, paused_why = null where name = $1 and paused_at is not null
