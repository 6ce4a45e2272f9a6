//! Pages of staged rows, which bound the memory of a file's reader and the size of a transaction.

/// The maximum number of rows of a page, unless [`PAGE_BYTES_MAX`] is reached first.
const PAGE_ROWS_MAX: usize = 1000;
/// A page is complete when its rows have this many bytes.
const PAGE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Collects rows into pages.
#[derive(Debug, Default)]
pub struct RowPages {
    page: Vec<String>,
    bytes: usize,
}

impl RowPages {
    /// Adds a row. Returns the page that it completes.
    pub fn add(&mut self, row: String) -> Option<Vec<String>> {
        self.bytes += row.len();
        self.page.push(row);
        (self.page.len() >= PAGE_ROWS_MAX || self.bytes >= PAGE_BYTES_MAX).then(|| self.rest())
    }

    /// Returns the rows that are in no page yet.
    pub fn rest(&mut self) -> Vec<String> {
        self.bytes = 0;
        std::mem::take(&mut self.page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_complete_at_a_number_of_rows_or_of_bytes() {
        let mut pages = RowPages::default();
        let complete: Vec<usize> =
            (0..2500).filter_map(|_| pages.add("{}".to_owned())).map(|page| page.len()).collect();
        assert_eq!(complete, [1000, 1000]);
        assert_eq!(pages.rest().len(), 500);
        assert_eq!(pages.add("x".repeat(PAGE_BYTES_MAX - 1)), None);
        assert_eq!(pages.add("x".to_owned()).map(|page| page.len()), Some(2));
        assert!(pages.rest().is_empty());
    }
}
