-- How the kinds of a worker wait after a failure, policies by kind (JSON). ?1 worker
SELECT backoffs FROM milepost_worker WHERE id = ?1
