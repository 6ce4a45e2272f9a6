-- The results of run ?1, whose parameters are ?2: its targets, its notices, targets without a notice, channels with several.
WITH target AS MATERIALIZED (
    SELECT id FROM milepost_demo_channel
    WHERE world = ?2 ->> 'world'
      AND (?2 ->> 'x' IS NULL OR x * (?2 ->> 'x') + y * (?2 ->> 'y') + z * (?2 ->> 'z') >= ?2 ->> 'nearness')
),
notice AS MATERIALIZED (
    SELECT channel, count(*) AS times FROM milepost_demo_notice WHERE run = ?1 GROUP BY channel
)
SELECT (SELECT count(*) FROM target),
       (SELECT coalesce(sum(times), 0) FROM notice),
       (SELECT count(*) FROM target WHERE id NOT IN (SELECT channel FROM notice)),
       (SELECT count(*) FROM notice WHERE times > 1)
