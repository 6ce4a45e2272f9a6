//! `team`: the owner of the schedules, limits and bulk jobs of a file.

use milepost_core::precedence::Scope;

use super::document::Node;
use super::fault::Faults;

/// The maximum length of the name of a team.
const NAME_BYTES_MAX: usize = 100;

/// Checks the name of the team, and that all schedules, limits and bulk jobs belong to it.
pub(super) fn check(root: &Node, faults: &mut Faults) {
    let Some((node, team)) = root.get("team").and_then(|node| Some((node, node.text()?))) else { return };
    // Else the names of the team billing.eu would belong to the team billing, too.
    if team.is_empty() || team.len() > NAME_BYTES_MAX || !team.chars().all(char::is_alphanumeric) {
        let what =
            format!("the team {team:?} must have 1 to {NAME_BYTES_MAX} bytes, which are letters and digits");
        return faults.add(node.span.start, what, "write a short name, such as \"billing\"");
    }
    let scope = Scope::Team(team.to_owned());
    let mut check = |at: usize, what: &str, name: &str| {
        if !scope.has(name) {
            let what = format!("the {what} {name:?} does not belong to team {team:?}");
            faults.add(
                at,
                what,
                format!("begin its name with \"{team}.\" or \"{team}:\", or move it to the file of its team"),
            );
        }
    };
    let entries = |section: &str| root.get(section).map(Node::nodes).unwrap_or_default();
    for (section, key, what) in [
        ("schedules", "name", "schedule"),
        ("limits", "kind", "limit of kind"),
        ("limits", "group", "limit of group"),
    ] {
        for name in entries(section).iter().filter_map(|entry| entry.get(key)) {
            if let Some(text) = name.text() {
                check(name.span.start, what, text);
            }
        }
    }
    for bulk in root.get("bulk").map(Node::entries).unwrap_or_default() {
        check(bulk.at, "bulk job", &bulk.key);
    }
}
