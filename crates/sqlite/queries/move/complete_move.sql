-- Records that the move has completed. ?1 move, ?2 now
UPDATE milepost_departure SET completed_at_ms = ?2 WHERE move_id = ?1 AND completed_at_ms IS NULL
