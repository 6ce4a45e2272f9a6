-- Which of these kinds are bulk jobs. $1 kinds
select d.name from milepost.bulk_definition d where d.name = any ($1)
