-- Lists the limits of kinds, with the number of running and of ready jobs. ?1 now
SELECT kind, per_second, burst, source, full_at_us,
       (SELECT count(*) FROM milepost_live WHERE milepost_live.kind = milepost_kind_limit.kind AND state = 'running'),
       (SELECT count(*) FROM milepost_live WHERE milepost_live.kind = milepost_kind_limit.kind AND ready_at_ms <= ?1)
FROM milepost_kind_limit ORDER BY kind
