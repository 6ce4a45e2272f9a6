id
select id, name from customer where city = :city and id > :cursor order by id limit :limit