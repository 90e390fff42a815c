// What is wrong with the page as it is shown: a list of texts. Contrast is computed from the
// colours that the browser would paint, in any notation.
(() => {
  const wrong = [];
  const narrow = innerWidth <= 400;
  const shown = e => e.checkVisibility({ opacityProperty: true, visibilityProperty: true, contentVisibilityAuto: true }) &&
    e.getClientRects().length > 0;
  const named = e => e.tagName.toLowerCase() + (e.id && "#" + e.id) + [...e.classList].map(c => "." + c).join("");
  const say = (what, e) => wrong.push(`${what}: ${named(e)} ${JSON.stringify(e.textContent.trim().slice(0, 60))}`);
  const all = selector => [...document.querySelectorAll(selector)].filter(shown);

  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const known = new Map();
  const colour = text => {
    if (!known.has(text)) {
      canvas.clearRect(0, 0, 1, 1);
      canvas.fillStyle = text;
      canvas.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
      known.set(text, [r, g, b, a / 255]);
    }
    return known.get(text);
  };
  const over = (top, under) => [0, 1, 2].map(i => top[i] * top[3] + under[i] * (1 - top[3])).concat(1);
  const ground = e => {
    const layers = [];
    for (; e; e = e.parentElement) {
      const layer = colour(getComputedStyle(e).backgroundColor);
      layers.push(layer);
      if (layer[3] === 1) break;
    }
    return layers.reduceRight((under, layer) => over(layer, under), [255, 255, 255, 1]);
  };
  const light = c => c.slice(0, 3).map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const contrast = (ink, under) => {
    const [low, high] = [light(over(ink, under)), light(under)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
  const seen = new Set();
  const read = (e, style) => {
    let opacity = 1;
    for (let at = e; at; at = at.parentElement) opacity *= getComputedStyle(at).opacity;
    const [r, g, b, a] = colour(style.color);
    const ratio = contrast([r, g, b, a * opacity], ground(e));
    if (ratio < 4.5) say(`contrast ${ratio.toFixed(2)} of ${style.color}`, e);
  };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const e = texts.currentNode.parentElement;
    if (!texts.currentNode.textContent.trim() || seen.has(e) || !shown(e)) continue;
    seen.add(e);
    read(e, getComputedStyle(e));
  }
  for (const e of all("input[placeholder]")) read(e, getComputedStyle(e, "::placeholder"));
  for (const e of all("td[data-label]")) read(e, getComputedStyle(e, "::before"));

  if (document.documentElement.scrollWidth > innerWidth) {
    for (const e of all("body *")) {
      if (e.getBoundingClientRect().right > innerWidth + 1) say("is wider than the screen", e);
    }
    wrong.push(`the page scrolls aside: ${document.documentElement.scrollWidth} > ${innerWidth}`);
  }
  for (const e of all("body *")) {
    const style = getComputedStyle(e);
    if (e.scrollWidth <= e.clientWidth + 1 || e.clientWidth <= 1 || style.overflowX === "visible" || style.textOverflow === "ellipsis") continue;
    if (["hidden", "clip"].includes(style.overflowX) && !e.matches(".spark, .spark *, .way")) say("is cut off", e);
    if (["auto", "scroll"].includes(style.overflowX) && narrow) say("scrolls aside", e);
  }

  const one = (what, selector, found = document.querySelectorAll(selector)) => found.length === 1 ||
    wrong.push(`${what}: ${found.length} of them`);
  one("main", "main");
  one("h1", "h1", all("h1"));
  one("banner", "body > header");
  one("contentinfo", "body > footer");
  if (!document.documentElement.lang || !document.title) wrong.push("no language or no title");
  const labels = all("nav").map(e => e.getAttribute("aria-label"));
  if (labels.length === 0 || labels.some(text => !text) || new Set(labels).size !== labels.length) wrong.push("navigation without a name of its own: " + labels);
  const first = document.querySelector("a[href], button, input");
  if (first.getAttribute("href") !== "#main") say("what is focused first does not skip to the content", first);
  let level = 0;
  for (const e of all("h1, h2, h3, h4")) {
    if (+e.tagName[1] > level + 1) say("a heading's level is left out before", e);
    level = +e.tagName[1];
  }
  const target = e => e.getAttribute("aria-labelledby")?.split(" ").map(id => document.getElementById(id)?.textContent).join("").trim();
  const name = e => e.getAttribute("aria-label") || target(e) || [...(e.labels ?? [])].map(l => l.textContent).join("").trim() ||
    (e.matches("a, button, summary") ? e.textContent.trim() : "");
  for (const e of all("input:not([type=hidden]), textarea, select, button, a, summary")) if (!name(e)) say("has no name", e);
  for (const e of document.querySelectorAll("[aria-labelledby]")) if (!target(e)) say("is named by nothing", e);
  for (const e of document.querySelectorAll("img:not([alt]), th:not([scope])")) say("has no alt or no scope", e);
  for (const e of all("table")) if (!e.querySelector("th")) say("has no headings", e);
  const ids = [...document.querySelectorAll("[id]")].map(e => e.id);
  for (const id of new Set(ids.filter((id, i) => ids.indexOf(id) !== i))) wrong.push("an id is there twice: " + id);

  for (const e of all("button, nav a, summary, .tabs a, label:has(input[type=checkbox])")) {
    const box = e.getBoundingClientRect();
    if (box.height < 24 || box.width < 24) say(`too small to be touched, ${Math.round(box.width)} by ${Math.round(box.height)}`, e);
  }
  for (const e of all("a[href], button, input:not([type=hidden]), textarea, summary")) {
    e.focus({ focusVisible: true, preventScroll: true });
    const style = getComputedStyle(e);
    if (document.activeElement !== e) say("cannot be focused", e);
    else if (style.outlineStyle === "none" || parseFloat(style.outlineWidth) < 2) say("does not show its focus", e);
    e.blur();
  }
  return wrong;
})()
