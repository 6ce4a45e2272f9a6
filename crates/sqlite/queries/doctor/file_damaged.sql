-- Pages and indexes that contradict each other.
SELECT count(*) OVER () AS count, 'the file' AS what, integrity_check AS detail
FROM pragma_integrity_check
WHERE integrity_check <> 'ok'
LIMIT 10
