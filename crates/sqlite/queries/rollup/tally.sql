-- Numbers of starts and ends of jobs after position ?1, up to position ?2, by minute and verb.
SELECT at_ms / 60000 * 60 AS minute_s, verb, count(*) AS times
FROM milepost_history
WHERE pos > ?1 AND pos <= ?2 AND verb IN ('claim', 'succeed', 'retry', 'fail')
GROUP BY minute_s, verb
