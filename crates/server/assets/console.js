// The script of the console: refreshes the page, sorts tables, draws charts and handles keys. All pages and forms work without it.
"use strict";

const EVERY_MS = 5000; // for changes that the stream does not report; a page that needs another interval sets data-live
const AT_MOST_EVERY_MS = 1000;
const LOOK_EVERY_MS = 100;

const one = (selector, within = document) => within.querySelector(selector);
const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const remember = (name, value) => {
  try { localStorage.setItem("milepost-" + name, value); } catch (_) { /* Storage may be forbidden. */ }
};

// --- Refresh: the page is fetched again, and differences are applied.

let fetching = false;
let fetchedAt = Date.now();
let again = 0;
// The URL at which an automatically continued search resumes.
let stretch = null;

// The page is not changed while the user fills in a form or has selected rows.
function busy() {
  const at = document.activeElement;
  const typing = at && at.closest("main") && /^(INPUT|SELECT|TEXTAREA)$/.test(at.tagName);
  return typing || one("[popover]:popover-open, input.pick:checked") !== null;
}

// `asked`: the user asked for it. Automatic refreshes do not count as use of the session, so that an unused session expires.
async function refresh(asked) {
  clearTimeout(again);
  again = 0;
  if (fetching || document.hidden) return;
  if (busy()) return live("held");
  fetching = true;
  fetchedAt = Date.now();
  try {
    const answer = await get(stretch ?? location.href, "text/html", asked === true);
    if (answer.redirected) return location.reload();
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    // If the server fails, the page keeps its contents.
    if (!busy() && answer.status < 500 && answer.status !== 429) take(page);
    live(answer.status < 500 && answer.status !== 429 ? "live" : "failing");
  } catch (_) {
    live("offline");
  } finally {
    fetching = false;
  }
}

function get(url, accept, asked) {
  const headers = asked ? { accept } : { accept, "x-milepost-refresh": "1" };
  return fetch(url, { headers, cache: "no-store" });
}

function take(page) {
  for (const id of ["page", "alerts"]) {
    const [now, then] = [document.getElementById(id), page.getElementById(id)];
    if (now && then) Idiomorph.morph(now, then, { callbacks: { beforeNodeMorphed: (node) => !node.dataset?.kept } });
  }
  localize();
  sort();
  draw();
  lookOn();
}

function live(how) {
  const mark = one("#live");
  if (!mark || mark.dataset.how === how) return;
  const words = { live: "live", held: "updates paused", failing: "update failed", offline: "no connection" };
  mark.dataset.how = how;
  mark.textContent = words[how];
}

// Refreshes soon, but at most once a second.
function soon() {
  if (!again) again = setTimeout(refresh, Math.max(0, fetchedAt + AT_MOST_EVERY_MS - Date.now()));
}

// Refreshes by a timer, for changes that the stream does not report. The next timer starts after the last response.
function later() {
  const every = Number(one("#page").dataset.live) || EVERY_MS;
  const left = fetchedAt + every - Date.now();
  setTimeout(async () => {
    if (Date.now() - fetchedAt >= every - 100) await refresh();
    later();
  }, Math.max(left, AT_MOST_EVERY_MS));
}

// A page specifies in data-stream which changes it needs: few enough for a browser, however busy the store is. All other changes
// are shown by the timer. A hidden page closes its stream.
let stream = null;

function listen() {
  const wanted = one("#page").dataset.stream;
  if (stream) stream.close();
  stream = null;
  if (!window.EventSource || !wanted || document.hidden) return;
  stream = new EventSource("/v1/stream?" + wanted);
  for (const kind of ["job", "batch", "reset"]) stream.addEventListener(kind, soon);
}

// --- A search without results continues automatically, until it finds something or the user stops it.

let resting = false;

// Starts the next search after each one. The address bar keeps the URL of the first one.
function lookOn() {
  const link = one("a[data-looks-on]");
  if (!link || resting) return;
  one("[data-does=rest]").hidden = false;
  clearTimeout(again);
  again = setTimeout(() => {
    stretch = link.href;
    refresh();
  }, LOOK_EVERY_MS);
}

function rest(button) {
  resting = true;
  clearTimeout(again);
  again = 0;
  button.hidden = true;
}

// --- Charts.

const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const charts = new Map();

function lines(names, colors) {
  return [{ label: "at", value: (_, at) => (at == null ? "" : clock(at)) }, ...names.map((label, at) => ({
    label, stroke: color(colors[at]), width: 1.5, points: { show: false },
    value: (_, value) => (value == null ? "–" : +value.toPrecision(3) + ""),
  }))];
}

const clock = (seconds) => new Date(seconds * 1000).toTimeString().slice(0, 5);
const weekday = (seconds) => new Date(seconds * 1000).toLocaleDateString(undefined, { weekday: "short", day: "numeric" });
const ROLLUPS_EVERY_MS = 10000; // Longer ranges change that often.
let range = "hour";
try { range = localStorage.getItem("milepost-range") || range; } catch (_) { /* Storage may be forbidden. */ }
let chartedAt = 0;

function chart(box, data, range) {
  const spec = JSON.parse(box.dataset.chart);
  const axis = { stroke: color("--muted"), grid: { stroke: color("--line"), width: 1 }, ticks: { show: false } };
  const options = {
    width: box.clientWidth, height: 150, series: lines(spec.names, spec.colors), cursor: { y: false },
    axes: [{ ...axis, values: (_, at) => at.map(range === "week" ? weekday : clock) }, { ...axis, size: 44 }], scales: { y: { range: (_, __, max) => [0, max > 0 ? max * 1.1 : 1] } },
  };
  const values = [data.at, ...spec.keys.map((key) => data[key])];
  const known = charts.get(box);
  if (known && known.u.width === options.width && known.theme === theme() && known.range === range) return known.u.setData(values);
  if (known) known.u.destroy();
  charts.set(box, { u: new uPlot(options, values, box), theme: theme(), range });
}

// `anew`: also if the data is recent.
async function draw(anew) {
  const place = one("[data-series]");
  if (!place || !window.uPlot) return;
  const buttons = all("[data-range]", place);
  const shown = buttons.some((button) => button.dataset.range === range) ? range : "hour";
  buttons.forEach((button) => button.setAttribute("aria-pressed", button.dataset.range === shown));
  const recent = shown === "recent";
  if (!recent && anew !== true && Date.now() - chartedAt < ROLLUPS_EVERY_MS) return;
  const url = recent ? "/series-recent.json" : `/series.json?range=${shown}${place.dataset.series}`;
  try {
    chartedAt = Date.now();
    const data = await (await get(url, "application/json", false)).json();
    for (const box of all("[data-chart]", place)) {
      const known = JSON.parse(box.dataset.chart).keys.every((key) => data[key]);
      box.hidden = !known;
      if (box.nextElementSibling) box.nextElementSibling.hidden = known;
      if (known) chart(box, data, shown);
    }
  } catch (_) { /* The next refresh tries again. */ }
}

function pickRange(button) {
  range = button.dataset.range;
  remember("range", range);
  draw(true);
}

// --- Light and dark theme; relative and absolute times.

const theme = () => document.documentElement.dataset.theme
  || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");

function switchTheme() {
  const next = theme() === "dark" ? "light" : "dark";
  document.documentElement.dataset.theme = next;
  remember("theme", next);
  draw(true);
}

function switchTimes() {
  const next = document.documentElement.dataset.times === "exact" ? "relative" : "exact";
  document.documentElement.dataset.times = next;
  remember("times", next);
}

// The server writes times in UTC, which stay in the tooltip. The page shows them in the user's time zone.
function localize() {
  for (const time of all("time[datetime]")) {
    const [at, shown] = [new Date(time.dateTime), one(".abs", time)];
    if (shown) shown.textContent = `${at.toLocaleDateString("sv")} ${at.toLocaleTimeString("sv")}`;
  }
}

// --- Tables that list everything can be sorted by a column. The order stays while the page refreshes.

const orders = new Map();

function sort() {
  for (const table of all("table[data-sort]")) {
    const place = table.tHead.textContent; // Tables come and go, their headings stay.
    const heads = all("thead th", table).filter((head) => !one(".unseen", head));
    heads.filter((head) => !one("button", head)).forEach((head) => offer(head, place));
    table.tHead.dataset.kept = "yes";
    const order = orders.get(place);
    const direction = order?.falls ? "descending" : "ascending";
    heads.forEach((head) => head.setAttribute("aria-sort", head.cellIndex === order?.column ? direction : "none"));
    if (!order) continue;
    const rows = [...table.tBodies[0].rows].map((row) => [value(row.cells[order.column]), row]);
    rows.sort(([a], [b]) => (order.falls ? compare(b, a) : compare(a, b)));
    table.tBodies[0].append(...rows.map(([, row]) => row));
  }
}

// Makes a heading a button that sorts by its column, and in the opposite order the second time.
function offer(head, place) {
  const button = document.createElement("button");
  button.className = "sorter";
  button.append(...head.childNodes);
  button.addEventListener("click", () => {
    const order = orders.get(place);
    orders.set(place, { column: head.cellIndex, falls: order?.column === head.cellIndex && !order.falls });
    sort();
  });
  head.append(button);
}

function value(cell) {
  const text = one("time", cell)?.dateTime ?? cell.textContent.trim();
  const number = Number(text.replaceAll(",", ""));
  return text === "" || Number.isNaN(number) ? text : number;
}

function compare(a, b) {
  return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
}

// --- Keys.

let chord = 0;

function step(by) {
  const rows = all("main [data-row]");
  if (rows.length === 0) return;
  const at = rows.findIndex((row) => row.contains(document.activeElement));
  const row = rows[Math.min(rows.length - 1, Math.max(0, at + by))];
  (one("a", row) || row).focus();
}

function key(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (chord > Date.now()) {
    chord = 0;
    const link = one(`nav a[data-key="${CSS.escape(event.key)}"]`);
    if (link) { event.preventDefault(); location.assign(link.href); }
    return;
  }
  const does = {
    "/": () => one("[data-search]")?.focus(),
    "?": () => one("#keys")?.togglePopover(),
    j: () => step(1),
    k: () => step(-1),
    x: () => one("input.pick", document.activeElement?.closest("[data-row]") || document)?.click(),
    t: switchTimes,
    d: switchTheme,
    r: () => refresh(true),
    g: () => { chord = Date.now() + 1500; },
  }[event.key];
  if (does) { event.preventDefault(); does(); }
}

function click(event) {
  const button = event.target.closest("[data-does]");
  const does = { theme: switchTheme, times: switchTimes, range: pickRange, rest }[button?.dataset.does];
  if (does) does(button);
}

function change(event) {
  if (event.target.matches("input.pick-all")) {
    all("input.pick").forEach((box) => { box.checked = event.target.checked; });
  }
  // What was typed is probably meant without outer spaces. Existing names can have some, and are sent as they are.
  if (event.target.matches("form.sheet input:not([type=file])")) event.target.value = event.target.value.trim();
  if (event.target.closest("form[data-at-once]") && event.target.tagName === "SELECT") event.target.form.requestSubmit();
}

// A form with invalid JSON is not sent: the server would refuse it, and the text would be lost.
function checkJson(event) {
  const area = event.target;
  if (!area.matches("textarea[data-json]")) return;
  let fault = "";
  try { if (area.value.trim()) JSON.parse(area.value); } catch (error) { fault = `This is not valid JSON: ${error.message}`; }
  area.setCustomValidity(fault);
}

// --- Forms. One that is refused stays open with what was typed, and says why.

async function send(event) {
  const form = event.target;
  if (!form.matches("form.sheet")) return;
  event.preventDefault();
  if (form.dataset.sending) return;
  form.dataset.sending = "1";
  try {
    const headers = { accept: "application/json", "x-milepost-form": "1" };
    const fields = new FormData(form);
    const body = form.enctype === "multipart/form-data" ? fields : new URLSearchParams(fields);
    const answer = await fetch(form.action, { method: "POST", body, headers });
    const said = answer.headers.get("content-type")?.includes("json") ? await answer.json() : null;
    if (said?.to) leave(said.to);
    else if (answer.status === 401) refuse(form, "Nothing was done: the session has ended. Copy what you need, then sign in again.");
    else if (said) refuse(form, said.refused ?? said.detail);
    else location.reload();
  } catch (_) {
    refuse(form, "The server did not answer, so it is not known whether this was done. Check, then try again.");
  } finally {
    delete form.dataset.sending;
  }
}

function leave(url) {
  if (new URL(url, location).href === location.href) location.reload();
  else location.assign(url);
}

function refuse(form, words) {
  const said = one(".flash", form) ?? document.createElement("p");
  said.className = "flash refused";
  said.setAttribute("role", "alert");
  said.textContent = words;
  one(".buttons", form).before(said);
  said.scrollIntoView({ block: "nearest" });
}

document.addEventListener("submit", send);
document.addEventListener("input", checkJson);
document.addEventListener("keydown", key);
document.addEventListener("click", click);
document.addEventListener("change", change);
addEventListener("resize", () => draw(true));
if (one("#page")?.dataset.live !== undefined) {
  later();
  document.addEventListener("visibilitychange", () => {
    listen();
    if (!document.hidden) refresh();
  });
  listen();
  lookOn();
}
// On narrow screens, scroll to the current menu entry and to the current state.
for (const it of all("nav [aria-current], svg.machine .now")) {
  const box = it.closest("nav, .scroll"), [at, within] = [it.getBoundingClientRect(), box.getBoundingClientRect()];
  box.scrollLeft += at.left + at.width / 2 - within.left - within.width / 2;
}
localize();
sort();
draw(true);
// A link to a form opens it.
function openLinked() {
  if (location.hash.startsWith("#act-")) document.getElementById(location.hash.slice(1))?.showPopover();
}
addEventListener("hashchange", openLinked);
openLinked();
