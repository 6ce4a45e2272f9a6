-- Returns the backoff policies of a worker by kind (JSON). ?1 worker
SELECT backoffs FROM milepost_worker WHERE id = ?1
