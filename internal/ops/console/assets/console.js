// All HTML comes from the server. A page is asked for again and again: the flow takes over what is new node by node, a
// list as a whole.
"use strict";

const maxSeconds = 15 * 60;
const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const calm = matchMedia("(prefers-color-scheme: dark)");
const clock = t => new Date(t * 1000).toTimeString().slice(0, 8);
let past = { at: [], stations: {} };
let charts = new Map();
let paused = false;
const flow = document.getElementById("lanes") !== null;

// A number a second of a quarter of an hour, per station: a spark for each and two charts for all of them.
function line(label, colour, fill) {
  return { label, stroke: () => css(colour), fill: fill && (() => css(fill)), width: 1.5, points: { show: false },
    value: (_, v) => v == null ? "–" : String(Math.round(v * 10) / 10) };
}

function spark(element) {
  const size = () => ({ width: element.clientWidth, height: element.clientHeight });
  return new uPlot({ ...size(), legend: { show: false }, cursor: { show: false }, padding: [3, 0, 0, 0],
    scales: { y: { range: (_, low, high) => [0, Math.max(1, high)] } },
    axes: [{ show: false }, { show: false }], series: [{}, line("", "--accent", "--tint")] }, [[], []], element);
}

function chart(element, series) {
  const axis = { stroke: () => css("--soft"), grid: { stroke: () => css("--line"), width: 1 }, ticks: { show: false },
    font: "12px system-ui, sans-serif" };
  return new uPlot({ width: element.clientWidth, height: 150, cursor: { y: false, points: { size: 6 } },
    scales: { y: { range: (_, low, high) => [0, Math.max(1, high * 1.1)] } },
    axes: [{ ...axis, space: 90, values: (_, all) => all.map(t => clock(t)) },
      { ...axis, size: 46 }],
    series: [{ label: "at", value: (_, t) => t == null ? "–" : clock(t) }, ...series] },
    [[], ...series.map(() => [])], element);
}

// total adds up the stations of a kind: 0 is their rate, 1 what waits.
function total(kind, which) {
  const columns = Object.entries(past.stations).filter(([id]) => id.split("/")[1] === kind).map(([, s]) => s[which]);
  return past.at.map((_, i) => columns.reduce((sum, c) => c[i] == null ? sum : (sum ?? 0) + c[i], null));
}

function draw() {
  for (const element of document.querySelectorAll("[data-station]")) {
    const id = element.dataset.station, box = element.querySelector(".spark");
    if (!box.firstChild) {
      charts.get(id)?.destroy();
      charts.set(id, spark(box));
    }
    const column = past.stations[id];
    if (column) charts.get(id).setData([past.at, column[0]]);
  }
  const boxes = { rate: document.getElementById("chart-rate"), waiting: document.getElementById("chart-waiting") };
  if (!boxes.rate.firstChild) {
    charts.set("rate", chart(boxes.rate, [line("committed", "--one"), line("published", "--two"), line("handled", "--three")]));
    charts.set("waiting", chart(boxes.waiting, [line("outboxes", "--one"), line("inboxes", "--three"), line("mails", "--four")]));
    for (const name of document.querySelectorAll(".u-legend th")) name.scope = "row";
  }
  charts.get("rate").setData([past.at, total("Outbox", 0), total("Relay", 0), total("Inbox", 0)]);
  charts.get("waiting").setData([past.at, total("Outbox", 1), total("Inbox", 1), total("Mail", 1)]);
}

// patch makes what is shown like the newer page, node by node: nothing that has the focus or is selected is replaced.
// The charts stay, of which the server knows nothing.
function patch(shown, fresh) {
  if (shown.nodeType !== Node.ELEMENT_NODE) {
    if (shown.data !== fresh.data) shown.data = fresh.data;
    return;
  }
  if (shown.matches(".spark, .charts")) return;
  for (const { name } of [...shown.attributes]) if (!fresh.hasAttribute(name)) shown.removeAttribute(name);
  for (const { name, value } of fresh.attributes) if (shown.getAttribute(name) !== value) shown.setAttribute(name, value);
  const old = [...shown.childNodes], next = [...fresh.childNodes];
  const alike = (a, b) => a.nodeName === b.nodeName && a.dataset?.station === b.dataset?.station;
  if (old.length === next.length && old.every((node, i) => alike(node, next[i]))) old.forEach((node, i) => patch(node, next[i]));
  else shown.replaceChildren(...next);
}

// record adds what the stations show to the past.
function record() {
  const at = Number(document.getElementById("lanes").dataset.at);
  if (at > (past.at.at(-1) ?? 0)) {
    const first = Math.max(0, past.at.findIndex(t => t > at - maxSeconds));
    past.at = [...past.at.slice(first), at];
    for (const { dataset: { station, rate, waiting } } of document.querySelectorAll("[data-station]")) {
      const columns = past.stations[station] ?? [[], []];
      past.stations[station] = [rate, waiting].map((v, i) => {
        const kept = [...columns[i].slice(first), v === "" ? null : Number(v)];
        return [...Array(Math.max(0, past.at.length - kept.length)).fill(null), ...kept];
      });
    }
  }
  draw();
}

// remember takes the past from the server, also what a page missed that was not seen or stood still.
async function remember() {
  try {
    past = await (await fetch("/history")).json();
  } catch {
    return; // look says that the console does not answer
  }
  record();
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden || paused) return;
  if (flow) remember();
  look();
});

function pause() {
  const button = document.getElementById("pause");
  paused = !paused;
  button.setAttribute("aria-pressed", paused);
  button.textContent = paused ? "Go on" : "Pause";
  if (paused) return;
  remember();
  look();
}

document.addEventListener("click", event => { if (event.target.id === "pause") pause(); });
document.addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select")) return;
  if (event.key === "/") {
    const find = document.querySelector(".find input");
    if (find) { event.preventDefault(); find.focus(); }
  }
  if (event.key === "p" && document.getElementById("pause")) pause();
});

// Lists. The newer page takes the place of what is shown when it is another one. What the operator has in hand stays as
// it is meanwhile: what is ticked, typed, open, focused or selected, and a dry run with what follows it. A note at the
// edge, which moves nothing, says that there is news.
const main = document.getElementById("main");
const lookEvery = flow ? 1000 : 2000;
let tag = main.dataset.tag; // of what is shown; none where the page never changes
let news = null; // the newest page, while it is not shown
let asked = 0; // the timer of the next look

const typed = () => [...main.querySelectorAll("textarea, input:not([type=checkbox], [type=hidden])")].some(field => field.value !== field.defaultValue);

function held() {
  const selection = getSelection();
  return typed() || main.querySelector("input:checked, details[open], .outcome:not(:empty)") !== null ||
    main.contains(document.activeElement) || !selection.isCollapsed && main.contains(selection.anchorNode);
}

function show() {
  const known = new Set([...main.querySelectorAll("tbody tr, li")].map(row => row.textContent));
  main.replaceChildren(...news.main.childNodes);
  for (const row of main.querySelectorAll("tbody tr, li")) row.classList.toggle("new", !known.has(row.textContent));
  tag = news.tag;
  news = null;
  htmx.process(main);
  tell();
}

// tell says what the list does not show; "" that there is nothing to say.
function tell(trouble = "") {
  const note = document.getElementById("news"), button = note.querySelector("button");
  const text = trouble || (news && (typed() ? "This page has changed. What you typed is still here." : "There is news."));
  note.hidden = !text;
  button.hidden = trouble !== "" || typed();
  if (text && note.firstChild.textContent !== text) note.firstChild.textContent = text;
}

// settle shows the news as soon as nothing is in hand any more.
function settle() {
  if (news && !held()) show();
  else if (news) tell();
}

async function look() {
  clearTimeout(asked);
  if (!tag || document.hidden || paused) return;
  const began = performance.now();
  try {
    const answer = await fetch(location.href, { headers: { "If-None-Match": news?.tag ?? tag } });
    if (answer.status === 403) tell("You are signed out: this page stands still.");
    else if (answer.status !== 304) {
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const fresh = page.getElementById("main");
      if (flow) {
        tag = fresh.dataset.tag;
        if (!paused) patch(main, fresh), record();
      } else news = fresh.dataset.tag === tag ? null : { main: fresh, tag: fresh.dataset.tag };
    }
    if (answer.status !== 403) news ? settle() : tell();
  } catch {
    tell("The console does not answer: this page stands still.");
  }
  // A page that takes its time is asked for less often.
  asked = setTimeout(look, Math.max(lookEvery, 10 * (performance.now() - began)));
}

if (tag) asked = setTimeout(look, lookEvery);
if (flow) remember();
for (const event of ["change", "focusout", "toggle"]) document.addEventListener(event, () => setTimeout(settle), true);
document.querySelector("#news button").addEventListener("click", show);

calm.addEventListener("change", () => charts.forEach(c => c.redraw()));
new ResizeObserver(() => charts.forEach(c => {
  const box = c.root.parentElement;
  if (box?.clientWidth) c.setSize({ width: box.clientWidth, height: c.height });
})).observe(document.documentElement);
