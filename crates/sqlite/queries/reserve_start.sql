-- Notes that a token of its group is reserved for the start of a job. ?1 job
UPDATE milepost_live SET start_reserved = 1 WHERE id = ?1
