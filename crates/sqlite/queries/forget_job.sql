-- Forgets what was asked. ?1 job
DELETE FROM job WHERE id = ?1
