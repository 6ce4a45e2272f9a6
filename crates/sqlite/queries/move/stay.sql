-- Takes back that the store is left. ?1 move
DELETE FROM milepost_departure WHERE move_id = ?1 AND completed_at_ms IS NULL
