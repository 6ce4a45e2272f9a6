//! Enums whose values have names, and the error for a name that is none of them.

use std::fmt;

/// A name that is not one of the known names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownName {
    /// The text that was given.
    pub given: String,
    /// The accepted names.
    pub known: &'static [&'static str],
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown name {:?}; expected one of: {}", self.given, self.known.join(", "))
    }
}

impl std::error::Error for UnknownName {}

/// Declares an enum whose values have names in SQL, JSON and on the command line.
macro_rules! named_enum {
    ($(#[$meta:meta])* $name:ident { $($(#[$variant_meta:meta])* $variant:ident = $text:literal,)+ }) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
        #[serde(rename_all = "snake_case")]
        $(#[$meta])*
        pub enum $name {
            $($(#[$variant_meta])* $variant,)+
        }

        impl $name {
            /// All values, in the order of declaration.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// Returns the name used in SQL, JSON and on the command line.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = crate::named::UnknownName;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                match text {
                    $($text => Ok(Self::$variant),)+
                    _ => Err(crate::named::UnknownName {
                        given: text.to_owned(),
                        known: &[$($text),+],
                    }),
                }
            }
        }
    };
}
pub(crate) use named_enum;
