-- A page of change_source. ?1 how many, ?2 after this sort, ?3 name and ?4 subscription
SELECT what, name, subscription FROM milepost_change_source
WHERE (what, name, subscription) > (?2, ?3, ?4) ORDER BY what, name, subscription LIMIT ?1
