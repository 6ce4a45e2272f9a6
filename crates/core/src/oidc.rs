//! People who sign in with an OpenID Connect provider: their name and role by the claims of their ID token.

use std::collections::HashSet;
use std::time::Duration;

use serde_json::{Value, json};
use thiserror::Error;

use crate::audit::{Actor, WHO_BYTES_MAX};
use crate::token::{Digest, Role};

/// The prefix of a person's name in the audit.
pub const WHO_PREFIX: &str = "oidc:";
/// The claim with the groups of a person, unless the configuration names another.
pub const GROUPS_CLAIM: &str = "groups";
/// The claim with the name of a person, unless the configuration names another.
pub const NAME_CLAIM: &str = "email";
/// The scopes that are requested, unless the configuration names others.
pub const SCOPES: [&str; 3] = ["openid", "email", "profile"];
/// The text of the button on the sign-in page, unless the configuration has another.
pub const BUTTON: &str = "Sign in with your company account";
/// How far the clocks of the provider and of the store may differ.
pub const CLOCK_SKEW: Duration = Duration::from_secs(60);
/// The roles that people can have, the highest first. That of workers is for programs.
pub const ROLES: [Role; 3] = [Role::Admin, Role::Operator, Role::Viewer];

/// A person whom the provider identified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Person {
    /// The name, without [`WHO_PREFIX`].
    pub name: String,
    /// The role.
    pub role: Role,
    /// The rule of the configuration that granted the role, as a hash.
    pub grant: Digest,
}

impl Person {
    /// Returns the name in the audit.
    #[must_use]
    pub fn who(&self) -> String {
        format!("{WHO_PREFIX}{}", self.name)
    }
}

/// The rules that give people their roles.
#[derive(Clone, Debug)]
pub struct RoleRules {
    /// The issuer of the provider.
    pub issuer: String,
    /// The id of this server at the provider.
    pub client_id: String,
    /// The claim with the groups: a name, or a path such as `realm_access.roles`.
    pub claim: String,
    /// The groups that have each role.
    pub roles: Vec<(Role, Vec<String>)>,
    /// The role of people without one of these groups; `None`: they cannot sign in.
    pub default_role: Option<Role>,
    /// The claim with the name: a name, or a path.
    pub name_claim: String,
}

/// The reason why a person cannot sign in.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotAdmitted {
    /// The ID token has no name.
    #[error("the ID token has no text in the claim `{0}`, which name_claim of [serve.oidc] names")]
    NoName(String),
    /// The name cannot be in the audit.
    #[error(
        "the claim `{0}` of the ID token is not usable as a name: it must have 1 to {max} bytes, and no control characters or characters \
         that change the direction of text", max = WHO_BYTES_MAX - WHO_PREFIX.len()
    )]
    UnusableName(String),
    /// The address is used as a name or group, and may belong to someone else.
    #[error("the provider has not verified the email address of this account (email_verified is false)")]
    UnverifiedEmail,
    /// No rule gives the person a role.
    #[error(
        "this account has no role: no value of the claim `{0}` of its ID token is in roles of [serve.oidc], and there is no default_role"
    )]
    NoRole(String),
}

impl RoleRules {
    /// Returns the person with these claims of a verified ID token, with the highest role that a rule grants.
    ///
    /// # Errors
    /// [`NotAdmitted`] with the reason.
    pub fn person(&self, claims: &Value) -> Result<Person, NotAdmitted> {
        let uses_email = [&self.claim, &self.name_claim].into_iter().any(|claim| claim == "email");
        if uses_email && claims.get("email_verified").is_some_and(is_false) {
            return Err(NotAdmitted::UnverifiedEmail);
        }
        let name = claim(claims, &self.name_claim).and_then(Value::as_str).map(str::trim);
        let name = name.filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| NotAdmitted::NoName(self.name_claim.clone()))?.to_owned();
        let (role, grant) = self.role(claims).ok_or_else(|| NotAdmitted::NoRole(self.claim.clone()))?;
        let person = Person { name, role, grant };
        Actor::new(person.who()).map_err(|_| NotAdmitted::UnusableName(self.name_claim.clone()))?;
        Ok(person)
    }

    /// Returns the highest role, and the rule that grants it.
    fn role(&self, claims: &Value) -> Option<(Role, Digest)> {
        let held = texts(claim(claims, &self.claim));
        let granted = ROLES.into_iter().find_map(|role| {
            let group = self.groups(role).find(|group| held.contains(group))?;
            Some((role, self.grant(role, Some(group))))
        });
        granted.or_else(|| self.default_role().map(|role| (role, self.grant(role, None))))
    }

    fn groups(&self, role: Role) -> impl Iterator<Item = &str> {
        let of_role = self.roles.iter().filter(move |(its, _)| *its == role);
        of_role.flat_map(|(_, groups)| groups).map(String::as_str)
    }

    /// Returns the default role, unless it is not one of people.
    fn default_role(&self) -> Option<Role> {
        self.default_role.filter(|role| ROLES.contains(role))
    }

    /// Returns the hash of a rule. `group` is `None` for the default role.
    fn grant(&self, role: Role, group: Option<&str>) -> Digest {
        Digest::of(&json!([self.issuer, self.client_id, self.claim, role, group]).to_string())
    }

    /// Returns the hashes of all rules. The session of a person whose rule is not among them has ended.
    #[must_use]
    pub fn grants(&self) -> HashSet<[u8; 32]> {
        let of_groups =
            ROLES.into_iter().flat_map(|role| self.groups(role).map(move |group| (role, Some(group))));
        let rules = of_groups.chain(self.default_role().map(|role| (role, None)));
        rules.map(|(role, group)| *self.grant(role, group).as_bytes()).collect()
    }
}

/// Some providers send booleans as text.
fn is_false(value: &Value) -> bool {
    *value == Value::Bool(false) || value.as_str().is_some_and(|text| text.eq_ignore_ascii_case("false"))
}

/// Returns the claim of this name, or at this path. Names can contain dots, as in `https://example.org/roles`.
fn claim<'c>(claims: &'c Value, path: &str) -> Option<&'c Value> {
    let claims = claims.as_object()?;
    claims.get(path).or_else(|| {
        path.match_indices('.').find_map(|(at, _)| claim(claims.get(&path[..at])?, &path[at + 1..]))
    })
}

/// Returns the text, or the texts of a list.
fn texts(value: Option<&Value>) -> HashSet<&str> {
    match value {
        Some(Value::String(text)) => HashSet::from([text.as_str()]),
        Some(Value::Array(values)) => values.iter().filter_map(Value::as_str).collect(),
        _ => HashSet::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> RoleRules {
        let groups = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        RoleRules {
            issuer: "https://login.example.org".to_owned(),
            client_id: "milepost".to_owned(),
            claim: "realm_access.roles".to_owned(),
            roles: vec![(Role::Viewer, groups(&["staff"])), (Role::Admin, groups(&["root", "ops"]))],
            default_role: None,
            name_claim: "email".to_owned(),
        }
    }

    fn of_groups(groups: Value) -> Value {
        json!({"email": "ada@example.org", "realm_access": {"roles": groups}})
    }

    #[test]
    fn a_person_has_the_highest_role_of_their_groups() {
        let role = |groups: Value| rules().person(&of_groups(groups)).map(|person| person.role);
        assert_eq!(role(json!(["staff", "ops"])), Ok(Role::Admin));
        assert_eq!(role(json!(["staff", 7, null])), Ok(Role::Viewer));
        assert_eq!(role(json!("staff")), Ok(Role::Viewer));
        for none in [json!(["Staff", "staff "]), json!([]), json!({"staff": true}), json!(true), Value::Null]
        {
            assert_eq!(role(none), Err(NotAdmitted::NoRole("realm_access.roles".to_owned())));
        }
        let rules = RoleRules { default_role: Some(Role::Viewer), ..rules() };
        assert_eq!(rules.person(&of_groups(json!(["x"]))).unwrap().role, Role::Viewer);
        assert_eq!(rules.person(&of_groups(json!(["root"]))).unwrap().role, Role::Admin);
        let workers = vec![(Role::Worker, vec!["x".to_owned()])];
        let rules = RoleRules { roles: workers, default_role: Some(Role::Worker), ..rules };
        assert!(
            rules.person(&of_groups(json!(["x"]))).is_err() && rules.grants().is_empty(),
            "people are no workers"
        );
    }

    #[test]
    fn a_claim_is_found_by_its_name_or_its_path() {
        let found = |claims: Value, path| claim(&claims, path).cloned();
        assert_eq!(found(json!({"a.b": 1, "a": {"b": 2}}), "a.b"), Some(json!(1)));
        assert_eq!(found(json!({"a": {"b.c": {"d": 3}}}), "a.b.c.d"), Some(json!(3)));
        assert_eq!(
            found(json!({"https://example.org/roles": 4}), "https://example.org/roles"),
            Some(json!(4))
        );
        assert_eq!(found(json!({"a": [{"b": 5}]}), "a.b"), None);
    }

    #[test]
    fn a_name_that_the_audit_cannot_have_is_refused() {
        let named = |name: Value| {
            let claims = json!({"email": name, "realm_access": {"roles": ["ops"]}});
            rules().person(&claims).map(|person| person.who())
        };
        assert_eq!(named(json!(" ada@example.org ")).unwrap(), "oidc:ada@example.org");
        assert_eq!(named(json!("Ада Лавлейс")).unwrap(), "oidc:Ада Лавлейс");
        for none in [json!(""), json!("  "), Value::Null, json!(["ada"]), json!(7)] {
            assert_eq!(named(none), Err(NotAdmitted::NoName("email".to_owned())));
        }
        for unusable in ["ada\n", "a\u{202e}da", "a\u{0}"]
            .map(|name| format!("x{name}x"))
            .into_iter()
            .chain(["x".repeat(196)])
        {
            assert_eq!(
                named(json!(unusable)),
                Err(NotAdmitted::UnusableName("email".to_owned())),
                "{unusable:?}"
            );
        }
        assert!(named(json!("x".repeat(195))).is_ok());
    }

    #[test]
    fn an_address_that_is_not_verified_is_no_name() {
        let with = |verified: Value, name_claim: &str| {
            let claims = json!({"email": "a@x", "preferred_username": "a", "email_verified": verified, "realm_access": {"roles": ["ops"]}});
            RoleRules { name_claim: name_claim.to_owned(), ..rules() }
                .person(&claims)
                .map(|person| person.name)
        };
        for unverified in [json!(false), json!("false")] {
            assert_eq!(with(unverified.clone(), "email"), Err(NotAdmitted::UnverifiedEmail));
            assert_eq!(with(unverified, "preferred_username").unwrap(), "a");
        }
        assert_eq!(with(json!(true), "email").unwrap(), "a@x");
        assert_eq!(with(Value::Null, "email").unwrap(), "a@x", "not every provider says so");
    }

    #[test]
    fn a_rule_that_is_changed_is_another_rule() {
        let person = rules().person(&of_groups(json!(["ops"]))).unwrap();
        let grants = |rules: RoleRules| rules.grants().contains(person.grant.as_bytes());
        assert!(grants(rules()) && grants(RoleRules { default_role: Some(Role::Viewer), ..rules() }));
        let without = vec![(Role::Admin, vec!["root".to_owned()])];
        let lower = vec![(Role::Viewer, vec!["ops".to_owned()])];
        for changed in [
            RoleRules { roles: without, ..rules() },
            RoleRules { roles: lower, ..rules() },
            RoleRules { issuer: "https://evil.example".to_owned(), ..rules() },
            RoleRules { client_id: "other".to_owned(), ..rules() },
            RoleRules { claim: "groups".to_owned(), ..rules() },
        ] {
            assert!(!grants(changed.clone()), "{changed:?}");
        }
    }
}
