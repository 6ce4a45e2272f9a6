//! Batches under faults: broken connections, killed workers, concurrent ends at one join.

mod cuts;
mod deadlocks;
mod joins;
mod kills;
mod verb_pairs;

milepost_testkit::on_each_home! { crate::batches::kills::Stage::set =>
    joins::eight_who_end_the_predecessors_of_a_join_release_it_once,
    kills::the_graph_of_a_distribution_runs_in_order_although_workers_are_killed,
}
