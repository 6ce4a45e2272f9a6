id
select id from t where id > :cursor order by id -- note
, b limit :limit