-- Records that the store is being moved. ?1 move, ?2 target, ?3 now
INSERT INTO milepost_departure (one, move_id, target, began_at_ms) VALUES (1, ?1, ?2, ?3)
