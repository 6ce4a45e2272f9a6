-- Takes a job that runs again out of ended. ?1 job
DELETE FROM milepost_ended WHERE id = ?1
