-- When the next job becomes ready after a time: a few probes a (queue, kind, priority). ?1 after
WITH RECURSIVE lane (queue, kind, priority) AS (
    SELECT * FROM (
        SELECT queue, kind, priority FROM live INDEXED BY live_claim
        WHERE ready_at_ms IS NOT NULL ORDER BY queue, kind, priority LIMIT 1
    )
    UNION ALL
    SELECT following.queue, following.kind, following.priority
    FROM lane
    CROSS JOIN live AS following ON following.id = coalesce(
        (
            SELECT id FROM live INDEXED BY live_claim
            WHERE live.queue = lane.queue AND live.kind = lane.kind AND live.priority > lane.priority
              AND live.ready_at_ms IS NOT NULL
            ORDER BY live.priority LIMIT 1
        ),
        (
            SELECT id FROM live INDEXED BY live_claim
            WHERE live.queue = lane.queue AND live.kind > lane.kind AND live.ready_at_ms IS NOT NULL
            ORDER BY live.kind, live.priority LIMIT 1
        ),
        (
            SELECT id FROM live INDEXED BY live_claim
            WHERE live.queue > lane.queue AND live.ready_at_ms IS NOT NULL
            ORDER BY live.queue, live.kind, live.priority LIMIT 1
        )
    )
)
SELECT min((
    SELECT live.ready_at_ms FROM live INDEXED BY live_claim
    WHERE live.queue = lane.queue AND live.kind = lane.kind AND live.priority = lane.priority
      AND live.ready_at_ms > ?1
    ORDER BY live.ready_at_ms LIMIT 1
))
FROM lane
