id
select id from t where id > :cursor or true order by id desc limit :limit