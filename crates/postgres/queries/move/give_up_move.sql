-- Gives move $1 up.
select milepost.give_up_move($1)
