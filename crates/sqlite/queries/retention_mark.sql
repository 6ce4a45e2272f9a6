-- How far a sort of retention has read history. ?1 sort
SELECT pos FROM milepost_retention WHERE sort = ?1
