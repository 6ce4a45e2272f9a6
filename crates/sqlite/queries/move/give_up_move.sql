-- Deletes the record of a move that has not completed. ?1 move
DELETE FROM milepost_departure WHERE move_id = ?1 AND completed_at_ms IS NULL
