//! Inputs that are made from those of a corpus by small changes.

use proptest::prelude::*;
use proptest::sample::Index;

/// Returns a strategy for inputs: one of the corpus with up to four changes.
pub(crate) fn inputs(corpus: Vec<Vec<u8>>) -> impl Strategy<Value = Vec<u8>> {
    let others = corpus.clone();
    (prop::sample::select(corpus), prop::collection::vec(change(others), 1..=4))
        .prop_map(|(input, changes)| changes.iter().fold(input, |input, change| change.applied(input)))
}

/// A change of an input.
#[derive(Clone, Debug)]
enum Change {
    /// Inserts a text.
    Insert(Index, Vec<u8>),
    /// Removes some bytes.
    Remove(Index, usize),
    /// Replaces a byte.
    Replace(Index, u8),
    /// Repeats some bytes.
    Repeat(Index, usize, usize),
    /// Appends the end of another input.
    Splice(Index, Vec<u8>, Index),
}

fn change(corpus: Vec<Vec<u8>>) -> impl Strategy<Value = Change> {
    const PIECES: [&str; 40] = [
        "\0",
        "\n",
        "\r\n",
        "\"",
        "'",
        "\\",
        "\\u0000",
        "\\ud800",
        "{",
        "}",
        "[",
        "]",
        "(",
        ")",
        ":",
        ",",
        "-",
        "--",
        "#",
        "${",
        "$$",
        "*/",
        "/*",
        ";",
        " ",
        "é",
        "\u{202e}",
        "\u{feff}",
        "0",
        "-1",
        "1e400",
        "1e-300",
        "18446744073709551616",
        "0.1",
        "null",
        "true",
        "or 1",
        "order by",
        "{}",
        "[]",
    ];
    let at = any::<Index>;
    prop_oneof![
        (at(), prop::sample::select(&PIECES[..])).prop_map(|(at, piece)| Change::Insert(at, piece.into())),
        (at(), prop::collection::vec(any::<u8>(), 1..4)).prop_map(|(at, bytes)| Change::Insert(at, bytes)),
        (at(), 1..16_usize).prop_map(|(at, count)| Change::Remove(at, count)),
        (at(), any::<u8>()).prop_map(|(at, byte)| Change::Replace(at, byte)),
        (at(), 1..8_usize, 2..64_usize).prop_map(|(at, count, times)| Change::Repeat(at, count, times)),
        (at(), prop::sample::select(corpus), at())
            .prop_map(|(at, other, from)| Change::Splice(at, other, from)),
    ]
}

impl Change {
    fn applied(&self, mut input: Vec<u8>) -> Vec<u8> {
        let position = |at: &Index, input: &[u8]| at.index(input.len() + 1);
        match self {
            Self::Insert(at, bytes) => {
                let at = position(at, &input);
                input.splice(at..at, bytes.iter().copied());
            }
            Self::Remove(at, count) => {
                let at = position(at, &input);
                input.drain(at..(at + count).min(input.len()));
            }
            Self::Replace(at, byte) => {
                let at = position(at, &input);
                if let Some(replaced) = input.get_mut(at) {
                    *replaced = *byte;
                }
            }
            Self::Repeat(at, count, times) => {
                let at = position(at, &input);
                let repeated = input[at..(at + count).min(input.len())].repeat(*times);
                input.splice(at..at, repeated);
            }
            Self::Splice(at, other, from) => {
                input.truncate(position(at, &input));
                input.extend_from_slice(&other[position(from, other)..]);
            }
        }
        input
    }
}
