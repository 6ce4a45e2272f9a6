-- Records a job or batch that existed already under the key of a new one. ?1 event, ?2 subscription, ?3 the job or batch
UPDATE milepost_event_work SET work_id = ?3 WHERE event_id = ?1 AND subscription = ?2
