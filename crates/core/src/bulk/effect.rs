//! The effect of a bulk job on the targets of a chunk, in SQL or in Rust. `H` is the type of a store's handlers.

use std::fmt;
use std::sync::Arc;

use super::error::InvalidBulk;
use super::sql::{Apply, Dialect, Source};
use super::statements::Statements;

/// The effect on the targets of a chunk.
pub enum Effect<H: ?Sized> {
    /// A statement over the relation `chunk`.
    Sql(String),
    /// A handler that runs in the chunk's transaction.
    Handler(Arc<H>),
    /// No effect in the database of the targets: a function reads them and has its effect elsewhere.
    Elsewhere,
}

impl<H: ?Sized> Clone for Effect<H> {
    fn clone(&self) -> Self {
        match self {
            Self::Sql(sql) => Self::Sql(sql.clone()),
            Self::Handler(handler) => Self::Handler(Arc::clone(handler)),
            Self::Elsewhere => Self::Elsewhere,
        }
    }
}

impl<H: ?Sized> fmt::Debug for Effect<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sql(sql) => f.debug_tuple("Sql").field(sql).finish(),
            Self::Handler(_) => f.write_str("Handler"),
            Self::Elsewhere => f.write_str("Elsewhere"),
        }
    }
}

/// A parsed effect.
pub enum Applied<H: ?Sized> {
    /// A statement.
    Sql(Apply),
    /// A handler.
    Handler(Arc<H>),
    /// None; see [`Effect::Elsewhere`].
    Elsewhere,
}

impl<H: ?Sized> Clone for Applied<H> {
    fn clone(&self) -> Self {
        match self {
            Self::Sql(apply) => Self::Sql(apply.clone()),
            Self::Handler(handler) => Self::Handler(Arc::clone(handler)),
            Self::Elsewhere => Self::Elsewhere,
        }
    }
}

impl<H: ?Sized> Applied<H> {
    /// Parses an effect on targets with these key columns.
    ///
    /// # Errors
    /// [`InvalidBulk::Apply`] describes what is wrong with the statement.
    pub fn read(effect: Effect<H>, key: &[String], dialect: Dialect) -> Result<Self, InvalidBulk> {
        Ok(match effect {
            Effect::Sql(sql) => Self::Sql(Apply::parse(&sql, key, dialect).map_err(InvalidBulk::Apply)?),
            Effect::Handler(handler) => Self::Handler(handler),
            Effect::Elsewhere => Self::Elsewhere,
        })
    }

    /// Refuses to apply a chunk if the effect is elsewhere, since its targets would count as done.
    ///
    /// # Errors
    /// [`InvalidBulk::NotApplied`].
    pub fn check_applies(&self) -> Result<(), InvalidBulk> {
        match self {
            Self::Sql(_) | Self::Handler(_) => Ok(()),
            Self::Elsewhere => Err(InvalidBulk::NotApplied {
                code: "no_effect".to_owned(),
                message: "this bulk job has no effect in the database of its targets: give it a function (Bulk::elsewhere)".to_owned(),
                retryable: false,
                retry_after: None,
            }),
        }
    }

    /// Returns the statement, if it is one.
    #[must_use]
    pub const fn statement(&self) -> Option<&Apply> {
        match self {
            Self::Sql(apply) => Some(apply),
            Self::Handler(_) | Self::Elsewhere => None,
        }
    }

    /// Checks that every parameter of the source and of the statement exists.
    ///
    /// # Errors
    /// [`InvalidBulk::NoParameter`] names the first one that is missing.
    pub fn check_parameters(
        &self,
        source: &Source,
        exists: impl Fn(&str) -> bool,
    ) -> Result<(), InvalidBulk> {
        let apply = self.statement().map(Apply::parameters).unwrap_or_default();
        let missing = source.parameters().into_iter().chain(apply).find(|name| !exists(name));
        missing.map_or(Ok(()), |name| Err(InvalidBulk::NoParameter { name: name.to_owned() }))
    }

    /// Returns the statements for those who examine the bulk job or start it.
    #[must_use]
    pub fn statements(&self, source: &Source) -> Statements {
        Statements::of(source, self.statement())
    }
}
