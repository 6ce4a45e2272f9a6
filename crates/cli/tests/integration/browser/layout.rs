//! Tests of the layout of every page: on a desktop and a phone screen, light and dark.

use serde_json::{Value, json};

use crate::browser::Console;
use crate::browser::pages::paths;
use crate::support::{Place, on_each_store};

on_each_store! {
    nothing_is_cut_off_and_nothing_overlaps_on_any_page,
}

/// Widths and heights.
const SCREENS: [(u32, u32); 2] = [(1440, 900), (390, 844)];

/// A script that returns layout faults: the page is wider than the screen, a button's text does not fit, or two clickable elements overlap.
/// Content that scrolls within a part of the page counts as far as it is visible.
const FAULTS: &str = r"(() => {
  const faults = [];
  const page = document.documentElement;
  if (page.scrollWidth > innerWidth) faults.push(`the page is ${page.scrollWidth} wide of ${innerWidth}`);
  // What is broken into lines has a box a line.
  const seen = (it) => [...it.getClientRects()].map((box) => {
    let [left, top, right, bottom] = [box.left, box.top, box.right, box.bottom];
    for (let around = it.parentElement; around; around = around.parentElement) {
      if (getComputedStyle(around).overflowX === 'visible') continue;
      const edge = around.getBoundingClientRect();
      [left, top] = [Math.max(left, edge.left), Math.max(top, edge.top)];
      [right, bottom] = [Math.min(right, edge.right), Math.min(bottom, edge.bottom)];
    }
    return { it, left, top, right, bottom };
  });
  const name = (it) => `${it.tagName} ${(it.textContent || it.name || '').trim().slice(0, 40)}`;
  const buttons = [...document.querySelectorAll('main :is(button, .button, input:not([type=hidden]), select, td > a)')];
  const shown = buttons.filter((it) => it.checkVisibility() && !it.closest('[popover]')).flatMap(seen);
  const there = shown.filter((one) => one.right - one.left > 2 && one.bottom - one.top > 2);
  for (const one of there) {
    const words = one.it.matches('button, .button') && one.it.scrollWidth > one.it.clientWidth + 1;
    if (words) faults.push(`${name(one.it)} is cut off`);
    for (const other of there) {
      if (one.it === other.it || one.it.contains(other.it) || other.it.contains(one.it)) continue;
      const wide = Math.min(one.right, other.right) - Math.max(one.left, other.left);
      const high = Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top);
      if (wide > 1 && high > 1) faults.push(`${name(one.it)} lies over ${name(other.it)}`);
    }
  }
  return faults;
})()";

fn nothing_is_cut_off_and_nothing_overlaps_on_any_page(place: Place) {
    let paths = paths(&place);
    let console = Console::of(place);
    let browser = &console.browser;
    console.open(&paths[0]);
    console.until_state("failed");
    for (width, height) in SCREENS {
        for scheme in ["light", "dark"] {
            browser.command(
                "Emulation.setDeviceMetricsOverride",
                json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}),
            );
            let media = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
            browser.command("Emulation.setEmulatedMedia", media);
            for path in &paths {
                console.open(path);
                // A phone's page is 980 wide until the browser has applied the page's viewport, which may be after its load.
                browser.until(&format!("{path} is {width} wide"), &format!("innerWidth === {width}"));
                assert_eq!(browser.read(FAULTS), json!([]), "{path} at {width}x{height}, {scheme}");
            }
        }
    }
    // Checks that the script detects a fault.
    console.open("/jobs");
    browser.read("document.querySelector('main').append(Object.assign(document.createElement('div'), { innerHTML: '<button>wide</button>' }))");
    browser.read("document.querySelector('main').lastElementChild.style.setProperty('width', '3000px')");
    let found = browser.read(FAULTS);
    assert!(found.as_array().is_some_and(|faults| faults.iter().any(is_of_width)), "{found}");
}

fn is_of_width(fault: &Value) -> bool {
    fault.as_str().is_some_and(|words| words.starts_with("the page is"))
}
