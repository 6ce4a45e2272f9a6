-- Keeps where that was. ?1 the position
UPDATE milepost_log_prune SET pos = ?1
