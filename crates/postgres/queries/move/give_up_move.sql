-- Abandons move $1.
select milepost.give_up_move($1)
