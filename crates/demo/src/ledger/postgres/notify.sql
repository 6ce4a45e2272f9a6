insert into milepost_demo_notification (run, place_id, job_id, attempt) values ($1, $2, $3, $4)
