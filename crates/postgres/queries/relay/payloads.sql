-- Payloads of events, $1 their slots and $2 their positions.
select e.slot, e.pos, e.payload::text as payload
from unnest($1::smallint[], $2::bigint[]) i(slot, pos)
join milepost.event e on e.slot = i.slot and e.pos = i.pos
