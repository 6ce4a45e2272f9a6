-- One example of a row in the store that no benchmark created. ?1 the queue of benches
SELECT * FROM (SELECT 'a job of queue ' || queue FROM milepost_job WHERE queue <> ?1 LIMIT 1)
UNION ALL
SELECT * FROM (SELECT 'schedule ' || name FROM milepost_schedule LIMIT 1)
UNION ALL
SELECT * FROM (
    SELECT 'worker ' || milepost_worker.id || ' of queue ' || served.value
    FROM milepost_worker, json_each(milepost_worker.queues) AS served
    WHERE served.value <> ?1
    LIMIT 1
)
UNION ALL
SELECT * FROM (SELECT 'an event of ' || aggregate_type FROM milepost_aggregate WHERE aggregate_type <> ?1 LIMIT 1)
UNION ALL
SELECT * FROM (SELECT 'subscription ' || name FROM milepost_subscription WHERE name <> 'bench' LIMIT 1)
LIMIT 1
