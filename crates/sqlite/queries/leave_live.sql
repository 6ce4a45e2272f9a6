-- Takes an ended job out of live. ?1 job
DELETE FROM milepost_live WHERE id = ?1
