-- Releases all slots of a publisher, and deletes it.
with gone as (delete from milepost.publisher where id = $1 returning subscription)
update milepost.subscription_slot s set owner = null, held_since = null
from gone where s.subscription = gone.subscription and s.owner = $1
