-- Moves back the next attempts to publish parked events, after the clock was set back by $1 ms.
update milepost.parked_aggregate set next_delivery_at = greatest(clock_timestamp(), next_delivery_at - $1 * interval '1 millisecond')
where next_delivery_at > clock_timestamp()
