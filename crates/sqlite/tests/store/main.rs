//! What is particular to the SQLite store, and the generic checks that it shares with the other one.

mod fences;
mod files;
mod fixture;
mod groups;
mod keys;
mod listings;
mod neighbours;
mod pairs;
mod queries;
mod rescues;
mod schemas;
mod transactions;
mod wakes;
