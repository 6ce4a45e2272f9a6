//! `[serve.oidc]`: sign-in to the console with an OpenID Connect provider.

use milepost_core::oidc::{self, RoleRules};
use milepost_core::token::Role;
use milepost_server::{OidcOptions, check_external_url, check_issuer};
use schemars::JsonSchema;
use serde::Deserialize;

use super::document::Node;
use super::fault::Faults;

/// Sign-in to the console with the accounts of a company, by its OpenID Connect provider, beside tokens
/// ([guide](guides/sign-in.md)). The server then requires a token or a session for everything. Needs `external_url` of `[serve]`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Oidc {
    /// The issuer of the provider, such as `https://login.example.org/realms/acme`. Its configuration is read from
    /// `/.well-known/openid-configuration` below it, at the first sign-in.
    issuer: String,
    /// The client id of this server at the provider.
    #[schemars(length(min = 1))]
    client_id: String,
    /// The client secret of this server at the provider, such as `${MILEPOST_OIDC_SECRET}`.
    #[schemars(length(min = 1))]
    client_secret: String,
    /// The requested scopes. The default is `["openid", "email", "profile"]`; `openid` is always requested.
    #[serde(default)]
    #[schemars(length(min = 1))]
    scopes: Option<Vec<String>>,
    /// The claim of the ID token with the groups of a person: a name, or a path such as `realm_access.roles`. The default is `groups`.
    #[serde(default)]
    #[schemars(length(min = 1))]
    claim: Option<String>,
    /// The groups that have each role. A person in several groups has the highest role.
    #[serde(default)]
    roles: Groups,
    /// The role of people in none of these groups. The default is none: they cannot sign in.
    #[serde(default)]
    default_role: Option<PersonRole>,
    /// The claim of the ID token with the name of a person, under which the audit has their changes. The default is `email`.
    #[serde(default)]
    #[schemars(length(min = 1))]
    name_claim: Option<String>,
    /// The text of the button on the sign-in page. The default is `Sign in with your company account`.
    #[serde(default)]
    #[schemars(length(min = 1, max = 60))]
    button: Option<String>,
}

/// The groups that have each role: values of the claim that `claim` names. The role `worker` is for programs only.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct Groups {
    /// Groups that have all permissions of users.
    admin: Vec<String>,
    /// Groups that may read, create jobs and events, and operate on them.
    operator: Vec<String>,
    /// Groups that may read.
    viewer: Vec<String>,
}

/// A role of people.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum PersonRole {
    Admin,
    Operator,
    Viewer,
}

impl From<PersonRole> for Role {
    fn from(role: PersonRole) -> Self {
        match role {
            PersonRole::Admin => Self::Admin,
            PersonRole::Operator => Self::Operator,
            PersonRole::Viewer => Self::Viewer,
        }
    }
}

impl Oidc {
    /// Returns the secrets of the section.
    pub(super) fn passwords(&self) -> Vec<String> {
        vec![self.client_secret.clone()]
    }

    /// Returns the settings of the server, which browsers reach by this URL.
    pub(super) fn options(self, external_url: String) -> OidcOptions {
        let Groups { admin, operator, viewer } = self.roles;
        let rules = RoleRules {
            issuer: self.issuer,
            client_id: self.client_id,
            claim: self.claim.unwrap_or_else(|| oidc::GROUPS_CLAIM.to_owned()),
            roles: vec![(Role::Admin, admin), (Role::Operator, operator), (Role::Viewer, viewer)],
            default_role: self.default_role.map(Role::from),
            name_claim: self.name_claim.unwrap_or_else(|| oidc::NAME_CLAIM.to_owned()),
        };
        OidcOptions {
            rules,
            client_secret: self.client_secret,
            scopes: self.scopes.unwrap_or_else(|| oidc::SCOPES.map(str::to_owned).to_vec()),
            button: self.button.unwrap_or_else(|| oidc::BUTTON.to_owned()),
            external_url,
        }
    }
}

// The client secret must not be in a log.
impl std::fmt::Debug for Oidc {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Oidc").field("issuer", &self.issuer).finish_non_exhaustive()
    }
}

/// Checks the section, and `external_url` beside it.
pub(super) fn check(serve: &Node, faults: &mut Faults) {
    let external = serve.get("external_url");
    if let Some(external) = external
        && let Some(Err(why)) = external.text().map(check_external_url)
    {
        let remedy = "write the URL by which browsers reach the server, such as \"https://jobs.example.org\"";
        faults.add(external.span.start, why.to_string(), remedy);
    }
    let Some(section) = serve.get("oidc") else { return };
    if external.is_none() {
        let remedy = "add external_url = \"https://jobs.example.org\" to [serve]: the URL by which browsers reach the server";
        faults.add(section.span.start, "sign-in with a provider needs external_url".to_owned(), remedy);
    }
    if let Some(issuer) = section.get("issuer")
        && let Some(Err(why)) = issuer.text().map(check_issuer)
    {
        let remedy = "write the issuer as the provider documents it, such as \"https://login.example.org/realms/acme\"";
        faults.add(issuer.span.start, why.to_string(), remedy);
    }
    for scope in section.get("scopes").map(Node::nodes).unwrap_or_default() {
        if scope
            .text()
            .is_some_and(|scope| scope.is_empty() || scope.contains(|c: char| !c.is_ascii_graphic()))
        {
            faults.add(
                scope.span.start,
                "not a scope".to_owned(),
                "write each scope as a separate text: [\"openid\", \"groups\"]",
            );
        }
    }
    check_roles(section, faults);
}

/// Refuses settings with which no person can sign in, and empty names of groups.
fn check_roles(section: &Node, faults: &mut Faults) {
    let roles = section.get("roles").map(Node::entries).unwrap_or_default();
    let groups: Vec<&Node> = roles.iter().flat_map(|role| role.node.nodes()).collect();
    for group in groups.iter().filter(|group| group.text().is_some_and(str::is_empty)) {
        faults.add(
            group.span.start,
            "a group without a name".to_owned(),
            "write the value of the claim, or remove it",
        );
    }
    if groups.is_empty() && section.get("default_role").is_none() {
        let remedy = "add roles = { admin = [\"milepost-admins\"] } with the groups of the provider, or default_role = \"viewer\"";
        faults.add(
            section.span.start,
            "no role is granted, so that no person can sign in".to_owned(),
            remedy,
        );
    }
}
