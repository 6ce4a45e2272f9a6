-- Unparks an aggregate without parked events. ?1 subscription, ?2 type, ?3 id
DELETE FROM milepost_parked_aggregate AS a
WHERE a.subscription = ?1 AND a.aggregate_type = ?2 AND a.aggregate_id = ?3
  AND NOT EXISTS (SELECT 1 FROM milepost_parked_event p
                  WHERE p.subscription = ?1 AND p.aggregate_type = ?2 AND p.aggregate_id = ?3)
