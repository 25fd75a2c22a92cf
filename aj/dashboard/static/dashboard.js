/* Keeps a page true without a reload: asks for it again every few seconds while somebody looks at it, and changes what
   has changed. Focus, scroll and what is selected stay. Without this script the pages are whole; they only stand still. */
"use strict";
(() => {
  const AGAIN_MS = 3000;
  // An API that hangs, or a network that drops what is sent, never answers: what is shown would grow old under "Live".
  const MOST_MS = 10000;
  const UNITS = [[60, 1, "s"], [3600, 60, "min"], [172800, 3600, "h"], [Infinity, 86400, "d"]];
  const WORDS = {live: "Live", paused: "Paused", lost: "No connection"};
  const element = (id) => document.getElementById(id);
  const button = element("live"), said = element("said"), refresh = element("refresh");
  // A page that could not be made, and is asked for until it can.
  const isAway = document.querySelector("[data-again]") !== null;
  let tag = null, state = "live", timer = 0;
  // How far the clock of the store is ahead of this one.
  let aheadMs = aheadOf(document);

  function aheadOf(page) {
    return Number(page.documentElement.dataset.now) - Date.now();
  }

  function length(ms) {
    const seconds = Math.max(0, Math.floor(ms / 1000));
    const [, size, unit] = UNITS.find(([below]) => seconds < below);
    return `${Math.floor(seconds / size)} ${unit}`;
  }

  function tick() {
    const now = Date.now() + aheadMs;
    for (const time of document.querySelectorAll("time[data-as]")) {
      const passed = now - Date.parse(time.dateTime);
      let text = length(Math.abs(passed));
      if (time.dataset.as === "ago") text = Math.abs(passed) < 1000 ? "now" : passed > 0 ? `${text} ago` : `in ${text}`;
      if (time.textContent !== text) time.textContent = text;
    }
  }

  const key = (node) => (node.nodeType === Node.ELEMENT_NODE && (node.id || node.dataset.key)) || "";
  const isAlike = (one, other) => one.nodeName === other.nodeName && key(one) === key(other);

  // Makes `old` what `wanted` is, and keeps every element that is still there.
  function change(old, wanted) {
    if (old.isEqualNode(wanted)) return;
    if (old.nodeType !== Node.ELEMENT_NODE) {
      old.data = wanted.data;
      return;
    }
    for (const name of old.getAttributeNames()) if (!wanted.hasAttribute(name)) old.removeAttribute(name);
    for (const {name, value} of wanted.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    let at = old.firstChild;
    for (const child of [...wanted.childNodes]) {
      let match = at;
      while (match && key(child) && !isAlike(match, child)) match = match.nextSibling;
      if (!match || !isAlike(match, child)) {
        old.insertBefore(child, at);
        continue;
      }
      while (at !== match) at = removed(at);
      at = at.nextSibling;
      change(match, child);
    }
    while (at) at = removed(at);
  }

  function removed(node) {
    const next = node.nextSibling;
    node.remove();
    return next;
  }

  const isOurs = (page) => page.documentElement.dataset.now && Number(page.getElementById("main")?.dataset.everyS) > 0;
  const news = (page) => [...page.querySelectorAll("[data-say]")].map((each) => each.dataset.say).join(" ");

  // Shows a page, and gives what is new on it, to be said.
  function show(page) {
    // Somebody else has signed in meanwhile: the head of the page is theirs too.
    if (page.body.dataset.viewer !== document.body.dataset.viewer) {
      location.reload();
      return "";
    }
    const before = news(document);
    aheadMs = aheadOf(page);
    document.title = page.title;
    change(element("main"), page.getElementById("main"));
    tick();
    const after = news(document);
    return after === before ? "" : after;
  }

  function become(next, shown = "") {
    const sentences = [shown];
    if (next === "lost" && state !== "lost") sentences.unshift("The connection is lost; what you see may be old.");
    if (next === "live" && state === "lost") sentences.unshift("The connection is back.");
    // What is said replaces what has not been read out yet, so all that is new is said at once.
    const sentence = sentences.filter(Boolean).join(" ");
    // What is written is read out, also where it is the same once more: of a look that brings nothing, nothing is.
    if (sentence) said.textContent = sentence;
    state = button.dataset.state = next;
    element("live-word").textContent = WORDS[next];
    button.setAttribute("aria-label", next === "paused" ? "Paused: follow again" : `${WORDS[next]}: pause`);
  }

  async function look() {
    clearTimeout(timer);
    if (state === "paused" || document.hidden) return;
    const limit = new AbortController(), limitTimer = setTimeout(() => limit.abort(), MOST_MS);
    try {
      const headers = tag ? {"If-None-Match": tag} : {};
      const answer = await fetch(location.href, {headers, cache: "no-store", signal: limit.signal});
      if (answer.status >= 500) throw new Error(answer.status);
      if (answer.redirected || isAway) return location.reload();
      let shown = "";
      if (answer.status !== 304) {
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        if (!isOurs(page)) throw new Error("a page of somebody between");
        if (state === "paused") return;
        shown = show(page);
        tag = answer.headers.get("ETag"); // the next answer may leave out only what is shown
      }
      if (state !== "paused") become("live", shown);
    } catch {
      if (state !== "paused") become("lost");
    } finally {
      clearTimeout(limitTimer);
    }
    wait();
  }

  function wait() {
    const everyMs = 1000 * element("main").dataset.everyS;
    timer = setTimeout(look, isAway || state === "lost" ? AGAIN_MS : everyMs);
  }

  tick();
  setInterval(tick, 1000);
  if (!button && isAway) setTimeout(() => location.reload(), AGAIN_MS);
  if (!button || document.querySelector("[data-still]")) return;
  button.hidden = false;
  if (refresh) refresh.hidden = true;
  button.addEventListener("click", () => {
    become(state === "paused" ? "live" : "paused");
    look();
  });
  document.addEventListener("visibilitychange", look);
  wait();
})();
