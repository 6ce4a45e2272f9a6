-- A page of kind_limit. ?1 how many, ?2 after this kind
SELECT kind, per_second, burst, full_at_us, source FROM milepost_kind_limit WHERE kind > ?2 ORDER BY kind LIMIT ?1
