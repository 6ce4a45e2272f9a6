-- Moves back the next attempts to publish parked events, after the clock was set back. ?1 now, ?2 by how many milliseconds
UPDATE milepost_parked_aggregate SET next_delivery_at_ms = max(?1, next_delivery_at_ms - ?2) WHERE next_delivery_at_ms > ?1
