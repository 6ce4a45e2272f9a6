-- How far a sort of retention has read history. ?1 sort
SELECT pos FROM retention WHERE sort = ?1
