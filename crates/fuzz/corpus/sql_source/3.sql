id
with m as (select * from member where age > :age) select id from m where (id > :cursor) order by id limit :limit