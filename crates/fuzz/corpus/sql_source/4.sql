id
select id from t /* all */ where "id" > :cursor and ok order by "id" limit :limit