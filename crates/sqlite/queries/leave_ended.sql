-- Takes a job that runs again out of ended. ?1 job
DELETE FROM ended WHERE id = ?1
