//! Checks of the documentation: links, anchors, and the table of contents of the book.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use pulldown_cmark::{Event, Parser, Tag, TagEnd};

/// A page: the destinations of its links, and its anchors.
#[derive(Default)]
struct Page {
    links: Vec<String>,
    anchors: BTreeSet<String>,
}

impl Page {
    fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).unwrap();
        let mut page = Self::default();
        let mut heading: Option<String> = None;
        for event in Parser::new_ext(&text, pulldown_cmark::Options::ENABLE_TABLES) {
            match event {
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => page.add_anchor(&heading.take().unwrap()),
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    page.links.push(dest_url.into_string());
                }
                Event::Text(text) | Event::Code(text) => {
                    if let Some(heading) = &mut heading {
                        heading.push_str(&text);
                    }
                }
                _ => {}
            }
        }
        page
    }

    /// Adds the anchor of a heading as GitHub and mdBook name it; a repeated one gets a number.
    fn add_anchor(&mut self, heading: &str) {
        let kept = heading.to_lowercase().replace(' ', "-");
        let slug: String =
            kept.chars().filter(|char| char.is_alphanumeric() || "-_".contains(*char)).collect();
        let again = (1..).map(|number| format!("{slug}-{number}"));
        let free = std::iter::once(slug.clone()).chain(again).find(|slug| !self.anchors.contains(slug));
        self.anchors.extend(free);
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap()
}

/// Returns the pages below a folder.
fn pages_below(folder: &Path) -> Vec<PathBuf> {
    let mut pages = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            pages.extend(pages_below(&path));
        } else if path.extension().is_some_and(|extension| extension == "md") {
            pages.push(path);
        }
    }
    pages
}

/// Returns all pages that users and contributors read.
fn pages() -> BTreeMap<PathBuf, Page> {
    let names = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"];
    let mut paths: Vec<PathBuf> = names.map(|name| root().join(name)).to_vec();
    paths.extend(pages_below(&root().join("docs")));
    for client in ["python", "typescript", "java"] {
        paths.push(root().join("clients").join(client).join("README.md"));
    }
    paths.into_iter().map(|path| (path.clone(), Page::read(&path))).collect()
}

#[test]
fn every_link_of_the_documentation_leads_to_a_file_and_an_anchor() {
    let pages = pages();
    let (mut checked, mut broken) = (0, Vec::new());
    for (path, page) in &pages {
        for link in page.links.iter().filter(|link| !link.contains("://") && !link.starts_with("mailto:")) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() {
                Ok(path.clone())
            } else {
                path.parent().unwrap().join(file).canonicalize()
            };
            let Ok(target) = target else {
                broken.push(format!("{}: {link}: no such file", path.display()));
                continue;
            };
            let has_anchor = pages.get(&target).is_none_or(|page| page.anchors.contains(anchor));
            if !anchor.is_empty() && !has_anchor {
                broken.push(format!("{}: {link}: no such heading", path.display()));
            }
            checked += 1;
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    assert!(checked > 200, "too few were found: {checked}");
}

#[test]
fn every_page_is_in_the_table_of_contents_once() {
    let docs = root().join("docs");
    let summary = docs.join("SUMMARY.md");
    let mut listed: Vec<PathBuf> = Page::read(&summary).links.iter().map(|link| docs.join(link)).collect();
    listed.sort();
    let mut pages: Vec<PathBuf> = pages_below(&docs).into_iter().filter(|page| *page != summary).collect();
    pages.sort();
    assert_eq!(listed, pages);
}

/// Run with `MILEPOST_UPDATE_DOCS=1` to update the file.
#[test]
fn the_list_of_pages_for_language_models_is_the_table_of_contents() {
    let docs = root().join("docs");
    let (introduction, _) = include_str!("../../../../docs/llms.txt").split_once("\n## ").unwrap();
    let lines = std::fs::read_to_string(docs.join("SUMMARY.md")).unwrap();
    // Decisions are read by those who change Milepost.
    let parts = lines.split("\n# ").skip(1).filter(|part| !part.starts_with("Decisions"));
    let listed: String = parts.map(|part| format!("\n## {}\n", part.trim_end())).collect();
    let expected = format!("{introduction}{listed}");
    let path = docs.join("llms.txt");
    if std::env::var_os("MILEPOST_UPDATE_DOCS").is_some() {
        std::fs::write(&path, &expected).unwrap();
    }
    let file = std::fs::read_to_string(path).unwrap();
    assert!(file == expected, "docs/llms.txt differs; run this test with MILEPOST_UPDATE_DOCS=1");
}
