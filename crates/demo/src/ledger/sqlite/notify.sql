INSERT INTO milepost_demo_notification (run, place_id, job_id, attempt) VALUES (?1, ?2, ?3, ?4)
