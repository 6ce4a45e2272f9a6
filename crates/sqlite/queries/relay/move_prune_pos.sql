-- Stores the position at which the search for deletable events ended. ?1 the position
UPDATE milepost_log_prune SET pos = ?1
