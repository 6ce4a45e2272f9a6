-- Records that target ?2 (key as JSON) of bulk job ?1 failed, with code ?3 and message ?4, at ?5. The keys of a run over the failures of
-- another run are the positions of those failures; the key of the failed target itself is stored.
INSERT INTO milepost_bulk_failure (job_id, key, code, message, at_ms)
SELECT ?1, coalesce(
    (SELECT f.key FROM milepost_bulk b JOIN milepost_bulk_failure f ON f.retried_by = b.job_id AND f.pos = ?2 ->> 0
     WHERE b.job_id = ?1 AND b.retry_of IS NOT NULL),
    ?2), ?3, ?4, ?5
