-- Takes an ended job out of live. ?1 job
DELETE FROM live WHERE id = ?1
