-- What in the store no bench made: one example. ?1 the queue of benches
SELECT * FROM (SELECT 'a job of queue ' || queue FROM job WHERE queue <> ?1 LIMIT 1)
UNION ALL
SELECT * FROM (SELECT 'schedule ' || name FROM schedule LIMIT 1)
UNION ALL
SELECT * FROM (
    SELECT 'worker ' || worker.id || ' of queue ' || served.value
    FROM worker, json_each(worker.queues) AS served
    WHERE served.value <> ?1
    LIMIT 1
)
LIMIT 1
