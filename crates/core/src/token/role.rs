//! Roles of access tokens.

use crate::named::named_enum;

named_enum! {
    /// The permissions of a token. The OpenAPI document contains the required role of each request.
    Role {
        /// May read.
        Viewer = "viewer",
        /// May read, create jobs and events, and operate on them.
        Operator = "operator",
        /// Has all permissions of users.
        Admin = "admin",
        /// May run jobs by the worker protocol, and nothing else.
        Worker = "worker",
    }
}

impl Role {
    /// Returns whether it grants what the `needed` role grants.
    #[must_use]
    pub const fn allows(self, needed: Self) -> bool {
        match self {
            Self::Viewer => matches!(needed, Self::Viewer),
            Self::Operator => matches!(needed, Self::Viewer | Self::Operator),
            Self::Admin => matches!(needed, Self::Viewer | Self::Operator | Self::Admin),
            Self::Worker => matches!(needed, Self::Worker),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Role::{self, Admin, Operator, Viewer, Worker};

    #[test]
    fn roles_allow_what_the_table_says() {
        let table: [(Role, &[Role]); 4] = [
            (Viewer, &[Viewer]),
            (Operator, &[Viewer, Operator]),
            (Admin, &[Viewer, Operator, Admin]),
            (Worker, &[Worker]),
        ];
        for (role, allowed) in table {
            for needed in Role::ALL {
                assert_eq!(role.allows(*needed), allowed.contains(needed), "{role} for {needed}");
            }
        }
    }
}
