//! Makes deceptive characters of stored texts visible in pages.

use std::borrow::Cow;

use milepost_core::text::is_deceptive;

/// Replaces [deceptive characters](is_deceptive) in the text of a page by U+FFFD: keys, ids, messages and payloads may contain them. Values of
/// fields and of text areas, which forms send back, remain as they are.
pub(super) fn visible(html: Cow<'_, str>) -> Cow<'_, str> {
    if !html.contains(is_deceptive) {
        return html;
    }
    let mut visible = String::with_capacity(html.len());
    let mut rest = html.as_ref();
    // Stored `<` and `>` are escaped, so each `<` begins a tag that ends with the next `>`.
    while let Some(tag) = rest.find('<') {
        visible.push_str(&rest[..tag].replace(is_deceptive, "\u{fffd}"));
        let end = if rest[tag..].starts_with("<textarea") { "</textarea>" } else { ">" };
        let after = rest[tag..].find(end).map_or(rest.len(), |found| tag + found + end.len());
        push_tag(&mut visible, &rest[tag..after]);
        rest = &rest[after..];
    }
    visible.push_str(&rest.replace(is_deceptive, "\u{fffd}"));
    visible.into()
}

/// The attributes whose values are shown or read aloud.
const SHOWN: [&str; 2] = ["aria-label=\"", "title=\""];

/// Appends a tag, with the values of attributes that are shown made visible.
fn push_tag(visible: &mut String, mut tag: &str) {
    while let Some(begin) = SHOWN.iter().filter_map(|name| Some(tag.find(name)? + name.len())).min() {
        let end = tag[begin..].find('"').map_or(tag.len(), |end| begin + end);
        visible.push_str(&tag[..begin]);
        visible.push_str(&tag[begin..end].replace(is_deceptive, "\u{fffd}"));
        tag = &tag[end..];
    }
    visible.push_str(tag);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_made_visible_and_what_forms_send_is_not_changed() {
        let html = "a\u{202e}b<input value=\"\u{202e}\">\u{2066}<textarea>\u{202e}</textarea>\u{2069}ä";
        let shown = "a\u{fffd}b<input value=\"\u{202e}\">\u{fffd}<textarea>\u{202e}</textarea>\u{fffd}ä";
        assert_eq!(visible(html.into()), shown);
        let html = "<a aria-label=\"Edit \u{202e}x\" href=\"\u{202e}\" title=\"\u{202e}\">";
        let shown = "<a aria-label=\"Edit \u{fffd}x\" href=\"\u{202e}\" title=\"\u{fffd}\">";
        assert_eq!(visible(html.into()), shown);
        assert!(matches!(visible("<p>ä".into()), Cow::Borrowed(_)));
        assert_eq!(visible("<b \u{202e}".into()), "<b \u{202e}", "an unfinished tag");
    }
}
