//! Tests of the contrast between text and background colors of the style sheet (WCAG 2.2, level AA).

use std::collections::HashMap;

const CSS: &str = include_str!("../../assets/console.css");
/// The minimum contrast for text of the size that the console uses.
const RATIO_MIN: f64 = 4.5;

/// The text colors, each with its background colors.
const PAIRS: &[(&str, &[&str])] = &[
    ("text", &["page", "card", "raised", "idle-ground", "busy-ground", "warn-ground", "bad-ground"]),
    ("muted", &["page", "card", "raised", "idle-ground", "busy-ground", "warn-ground", "bad-ground"]),
    ("link", &["page", "card", "raised", "idle-ground", "busy-ground", "warn-ground", "bad-ground"]),
    ("good", &["card", "good-ground"]),
    ("bad", &["page", "card", "raised", "idle-ground", "busy-ground", "bad-ground"]),
    ("warn", &["card", "warn-ground"]),
    ("busy", &["card", "busy-ground"]),
    ("idle", &["card", "idle-ground"]),
    ("off", &["card", "off-ground"]),
    // Emphasized buttons.
    ("card", &["bad", "busy"]),
];

type Colors = HashMap<&'static str, [f64; 3]>;

/// Returns the colors declared for this selector, by name.
fn colors(selector: &str) -> Colors {
    let block = CSS.split_once(selector).and_then(|(_, rest)| rest.split_once('}')).unwrap().0;
    let declared = block.split(';').filter_map(|line| line.trim().strip_prefix("--")?.split_once(": #"));
    declared.map(|(name, hex)| (name, color(hex))).collect()
}

/// Returns the components red, green and blue, from 0 to 1.
fn color(hex: &str) -> [f64; 3] {
    let digits = hex.len() / 3;
    [0, 1, 2].map(|at| {
        let part = &hex[at * digits..(at + 1) * digits];
        let part = if digits == 1 { part.repeat(2) } else { part.to_owned() };
        f64::from(u8::from_str_radix(&part, 16).unwrap()) / 255.0
    })
}

fn luminance(color: [f64; 3]) -> f64 {
    let linear =
        |share: f64| if share <= 0.04045 { share / 12.92 } else { ((share + 0.055) / 1.055).powf(2.4) };
    let [red, green, blue] = color.map(linear);
    0.2126 * red + 0.7152 * green + 0.0722 * blue
}

fn ratio(one: [f64; 3], other: [f64; 3]) -> f64 {
    let (one, other) = (luminance(one), luminance(other));
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

#[test]
fn the_ratio_is_that_of_the_standard() {
    assert_eq!(ratio(color("000"), color("ffffff")), 21.0);
    assert!((ratio(color("777777"), color("fff")) - 4.48).abs() < 0.01);
}

#[test]
fn text_can_be_read_on_its_ground_in_both_themes() {
    let themes = [("light", colors(":root {")), ("dark", colors(":root[data-theme=\"dark\"] {"))];
    let mut poor = Vec::new();
    for (theme, colors) in &themes {
        for (text, grounds) in PAIRS {
            for ground in *grounds {
                let ratio = ratio(colors[text], colors[ground]);
                if ratio < RATIO_MIN {
                    poor.push(format!("{theme}: {text} on {ground} is {ratio:.2}"));
                }
            }
        }
    }
    assert_eq!(poor, Vec::<String>::new());
}

#[test]
fn dark_is_the_same_whether_the_system_or_somebody_wants_it() {
    assert_eq!(colors(":root:not([data-theme=\"light\"]) {"), colors(":root[data-theme=\"dark\"] {"));
}
