a,b
select a, b from t where (a, b) > :cursor and x::text <> 'it''s' order by a, b asc limit :limit