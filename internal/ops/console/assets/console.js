// All HTML and all pictures come from the server. The flow is asked for again each second, and takes over what is new
// node by node. Other pages stay as they are.
"use strict";

const lookEvery = 1000;
const main = document.getElementById("main");
const flow = document.getElementById("lanes") !== null;
let asked = 0; // the timer of the next look
let paused = false;

// patch makes what is shown like the newer page, node by node: nothing that has the focus, is open or is selected is
// replaced. An outcome stays as it is.
function patch(shown, fresh) {
  if (shown.nodeType !== Node.ELEMENT_NODE) {
    if (shown.data !== fresh.data) shown.data = fresh.data;
    return;
  }
  if (shown.matches(".outcome, .at")) return;
  for (const { name } of [...shown.attributes]) if (!fresh.hasAttribute(name) && name !== "open") shown.removeAttribute(name);
  for (const { name, value } of fresh.attributes) if (shown.getAttribute(name) !== value) shown.setAttribute(name, value);
  const old = [...shown.childNodes], next = [...fresh.childNodes];
  const alike = (a, b) => a.nodeName === b.nodeName && a.dataset?.station === b.dataset?.station;
  if (old.length === next.length && old.every((node, i) => alike(node, next[i]))) old.forEach((node, i) => patch(node, next[i]));
  else shown.replaceChildren(...next);
}

// lose marks the page as old: nothing on it is known any more. The next answer replaces the mark.
function lose(text) {
  if (document.body.dataset.lost) return;
  document.body.dataset.lost = "yes";
  const heading = document.querySelector("#sentence h1");
  heading.closest(".cause").dataset.state = "unknown";
  heading.textContent = "Unknown. " + text;
  document.querySelector(".listened").textContent = text;
  for (const shown of main.querySelectorAll("[data-state]")) shown.dataset.state = "unknown";
  for (const moving of main.querySelectorAll("[data-moving]")) moving.removeAttribute("data-moving");
}

async function look() {
  clearTimeout(asked);
  if (!flow || document.hidden || paused) return;
  const began = performance.now();
  try {
    const answer = await fetch(location.href);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (!paused) patch(main, page.getElementById("main"));
    delete document.body.dataset.lost;
  } catch {
    lose("The console does not answer: this page is not renewed.");
  }
  // A page that takes its time is asked for less often.
  asked = setTimeout(look, Math.max(lookEvery, 10 * (performance.now() - began)));
}

function pause() {
  const button = document.getElementById("pause");
  paused = !paused;
  button.setAttribute("aria-pressed", paused);
  button.textContent = paused ? "Go on" : "Pause";
  if (!paused) look();
}

// Changes. A form sends itself, and its answer is put where the form names: an outcome of the page, or the one that it
// is in. What is under way is asked for again until it has ended.
document.addEventListener("submit", async event => {
  const form = event.target, to = form.dataset.to;
  if (!to) return;
  event.preventDefault();
  const outcome = to === "closest" ? form.closest(".outcome") : document.querySelector(to);
  const body = new URLSearchParams(new FormData(form, event.submitter));
  try {
    const answer = await fetch(form.action, { method: "POST", body });
    if (answer.status === 403) outcome.textContent = "You are signed out: nothing was done.";
    else put(outcome, await answer.text());
  } catch {
    outcome.textContent = "The console does not answer: it is not known whether anything was done.";
  }
});

function put(outcome, html) {
  outcome.replaceChildren(...new DOMParser().parseFromString(html, "text/html").body.childNodes);
  const next = outcome.querySelector("[data-follow]")?.dataset.follow;
  if (next) setTimeout(() => follow(outcome, next), 300);
}

async function follow(outcome, path) {
  if (outcome.querySelector("[data-follow]")?.dataset.follow !== path) return; // another one took its place
  try {
    put(outcome, await (await fetch(path)).text());
  } catch {
    setTimeout(() => follow(outcome, path), 2000);
  }
}

// A chart shows its values at the pointer. They are read from its paths.
document.addEventListener("pointermove", event => {
  const chart = event.target.closest?.(".chart"), picture = chart?.querySelector("svg");
  if (!picture) return;
  const box = picture.getBoundingClientRect(), end = Number(chart.parentElement.dataset.at);
  const step = Math.min(89, Math.max(0, Math.round((event.clientX - box.left) / box.width * 89)));
  const values = [...picture.querySelectorAll("path")].map((path, i) => {
    const point = (path.getAttribute("d") ?? "").match(new RegExp(`[ML]${step} ([\\d.]+)`));
    const value = point ? Math.round((100 - point[1]) * chart.dataset.top / 10) / 10 : "–";
    return chart.querySelectorAll("li")[i].firstChild.nextSibling.textContent.trim() + " " + value;
  });
  const at = new Date((end - (89 - step) * 10) * 1000).toISOString().slice(11, 19);
  chart.querySelector(".at").textContent = `${at} UTC: ${values.join(", ")}`;
});
document.addEventListener("pointerout", event => {
  const at = event.target.closest?.(".chart")?.querySelector(".at");
  if (at) at.textContent = "";
});

document.addEventListener("visibilitychange", look);
document.addEventListener("click", event => { if (event.target.id === "pause") pause(); });
document.addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input")) return;
  if (event.key === "/") {
    const find = document.querySelector(".find input");
    if (find) { event.preventDefault(); find.focus(); }
  }
  if (event.key === "p" && document.getElementById("pause")) pause();
});
asked = setTimeout(look, lookEvery);
