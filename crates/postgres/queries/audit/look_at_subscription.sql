-- Whether subscription $1 is paused.
select jsonb_build_object('made_at', made_at, 'paused_at', paused_at, 'paused_why', paused_why)::text
from milepost.subscription where name = $1
