//! Definitions of DAGs that read hidden data.

use super::Hidden;
use crate::dag::checked::Dag;
use crate::dag::definition::Task;

impl Hidden {
    /// Returns whether a DAG reads its input, or the output of a task, and values of these are hidden. Such a DAG can copy the values to a
    /// kind in which they are not hidden, or tell by a condition or a schema whether a guess is right.
    #[must_use]
    pub fn is_read_by(&self, dag: &Dag) -> bool {
        let definition = dag.definition();
        let hides_input = self.hides_in(&definition.name);
        if hides_input && definition.input_schema.is_some() {
            return true;
        }
        let hides_output = |task: &Task| match (&task.dag, &task.kind, &task.bulk) {
            // The kinds in the inner batch can change.
            (Some(_), ..) => !self.is_empty(),
            (None, kind, bulk) => kind.iter().chain(bulk).any(|name| self.hides_in(name)),
        };
        let hiding: Vec<_> =
            definition.tasks.iter().filter(|(_, task)| hides_output(task)).map(|(key, _)| key).collect();
        definition.tasks.iter().zip(0..).any(|((_, task), number)| {
            let reads = dag.task(number).reads();
            let reads_task =
                |key: &String| reads.tasks.contains(key) || reads.all_tasks && task.after.contains(key);
            reads.input && hides_input || hiding.iter().any(|key| reads_task(key))
        })
    }
}
