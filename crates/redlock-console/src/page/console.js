// The pages in motion: newer sections from the server, times that count, confirmations of actions.
// The server makes all HTML and escapes every text in it; nothing here makes HTML of a text.

const find = (selector, within = document) => within.querySelector(selector);
const all = (selector, within = document) => within.querySelectorAll(selector);

// Times. The server's clock counts: that of this machine may be wrong.

let ahead = Number(document.body.dataset.at) - Date.now();
const now = () => Date.now() + ahead;
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;

/** Returns a span in milliseconds as the server writes it, in whole seconds. */
function span(ms) {
  const seconds = Math.max(0, Math.round(ms / 1000));
  const two = (many, large, few, small) => (few ? `${many} ${large} ${few} ${small}` : `${many} ${large}`);
  const minutes = Math.floor(seconds / 60);
  const hours = Math.floor(minutes / 60);
  if (seconds < 60) return `${seconds} s`;
  if (minutes < 60) return two(minutes, "min", seconds % 60, "s");
  if (hours < 48) return two(hours, "h", minutes % 60, "min");
  return two(Math.floor(hours / 24), "d", hours % 24, "h");
}

function moment(at) {
  const date = new Date(at);
  const time = date.toLocaleTimeString("en-GB");
  const isToday = date.toDateString() === new Date(now()).toDateString();
  return isToday ? time : `${date.toLocaleDateString("sv-SE")} ${time}`;
}

/** Gives a time its words of this moment. */
function count(time) {
  const at = Date.parse(time.dateTime);
  let words = moment(at);
  if (time.className === "left") words = at > now() ? span(at - now()) : "now";
  if (time.className === "since") words = span(now() - at);
  if (time.textContent !== words) time.textContent = words;
}

/** Gives all times in a part of a page their words, and says in which zone they are. */
function countAll(within) {
  for (const time of all("time", within)) {
    count(time);
    const at = new Date(Date.parse(time.dateTime));
    if (!time.title && !Number.isNaN(at.getTime())) {
      time.title = `${at.toLocaleString("en-GB", { dateStyle: "full", timeStyle: "long" })} (${zone}); ${time.dateTime}`;
    }
  }
}

setInterval(() => {
  if (document.hidden) return;
  all("time.left, time.since").forEach(count);
  // A machine that slept, or a network that lost the connection, tells nobody of it.
  if (stream && Date.now() - heard > SILENCE) begin();
}, 1000);

// Newer HTML in the place of older, without a loss of what the reader has opened, selected and focused.

/** Returns the rows of a table, each by what it is about: two that are about the same are told apart by their order. */
function rowsOf(body) {
  const rows = new Map();
  for (const row of body.rows) {
    const subject = find("th a", row)?.getAttribute("href") ?? find("th", row)?.textContent ?? row.className;
    let number = 0;
    while (rows.has(`${number} ${subject}`)) number += 1;
    rows.set(`${number} ${subject}`, row);
  }
  return rows;
}

function alignAttributes(old, fresh) {
  for (const { name } of [...old.attributes]) {
    // Whether details are open is the reader's choice.
    if (!fresh.hasAttribute(name) && name !== "open") old.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
}

/** Makes an element like a newer one. */
function align(old, fresh) {
  if (old.nodeType !== fresh.nodeType || old.nodeName !== fresh.nodeName) {
    old.replaceWith(fresh);
  } else if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
  } else if (!old.isEqualNode(fresh)) {
    alignAttributes(old, fresh);
    if (old.nodeName === "TBODY") alignRows(old, fresh);
    else alignChildren(old, fresh);
  }
}

function alignChildren(old, fresh) {
  const olds = [...old.childNodes];
  const freshs = [...fresh.childNodes];
  freshs.forEach((child, place) => {
    if (olds[place]) align(olds[place], child);
    else old.append(child);
  });
  olds.slice(freshs.length).forEach((child) => child.remove());
}

/** The same for rows, each of which stays the same element wherever it moves. */
function alignRows(old, fresh) {
  const known = rowsOf(old);
  let place = old.firstElementChild;
  for (const [key, row] of rowsOf(fresh)) {
    const same = known.get(key);
    known.delete(key);
    if (!same) old.insertBefore(row, place);
    else if (same === place) place = place.nextElementSibling;
    else if (old.moveBefore) old.moveBefore(same, place);
    else old.insertBefore(same, place);
    if (same) align(same, row);
  }
  for (const row of known.values()) row.remove();
}

/** Puts an element that the server has made into the place of the one with its `id`. */
function put(fresh) {
  const old = document.getElementById(fresh.id);
  countAll(fresh);
  if (old) align(old, fresh);
  if (fresh.id === "verdict") {
    const votes = /^\d+ of \d+/.exec(find("h1").textContent);
    const rest = document.title.split(" · ").slice(1).join(" · ");
    if (votes) document.title = `${votes[0]} vote · ${rest}`;
  }
}

const parsed = (html) => new DOMParser().parseFromString(html, "text/html");

function looked(at) {
  ahead = at - Date.now();
  const time = find("#looked time");
  if (!time) return;
  time.dateTime = new Date(at).toISOString();
  time.removeAttribute("title");
  countAll(find("#looked"));
}

// What is newer: a stream on the page with everything, and a look each second on the others.
// A tab that nobody sees asks for nothing: browsers open six connections to a host at most.

const live = find("#live");
const hasStream = Boolean(find("#keys"));
/** How long the server is silent at most, in milliseconds: the nodes' section comes each ten seconds. */
const SILENCE = 45_000;
let stream;
let heard = 0;
let timer;
let failures = 0;
let begun = 0;

function say(isLive, words) {
  live.className = isLive ? "on" : "off";
  if (live.textContent !== words) live.textContent = words;
}

function begin() {
  end();
  begun += 1;
  if (document.hidden) return;
  heard = Date.now();
  if (!hasStream) {
    look();
    return;
  }
  stream = new EventSource(`events${location.search}`);
  stream.onmessage = ({ data }) => {
    const { at_ms: at, html } = JSON.parse(data);
    failures = 0;
    heard = Date.now();
    say(true, "live");
    looked(at);
    for (const section of parsed(Object.values(html).join("")).querySelectorAll("body > section")) put(section);
  };
  stream.onerror = () => failed(stream.readyState === EventSource.CLOSED);
}

function end() {
  stream?.close();
  stream = undefined;
  clearTimeout(timer);
}

function failed(isOver) {
  failures += 1;
  say(false, failures < 3 ? "connecting again" : "the console does not answer: the page is as it was then");
  // The browser itself tries again after a break, but not after an answer that is no stream.
  if (!isOver) return;
  timer = setTimeout(begin, Math.min(30, 2 ** failures) * 1000);
  if (hasStream) fetch("snapshot", { method: "HEAD" }).then(judged, () => {});
}

function judged(answer) {
  if (answer.status === 401 || answer.status === 403) say(false, "you have no access any more: load the page again");
}

async function look() {
  const mine = begun;
  try {
    const answer = await fetch(location.href, { headers: { accept: "text/html" } });
    if (!answer.ok) throw answer;
    const page = parsed(await answer.text());
    if (mine !== begun) return;
    failures = 0;
    say(true, "live");
    looked(Number(page.body.dataset.at));
    const fresh = find("main", page);
    countAll(fresh);
    align(find("main"), fresh);
    timer = setTimeout(begin, 1000);
  } catch (error) {
    if (mine !== begun) return;
    failed(true);
    if (error instanceof Response) judged(error);
  }
}

document.addEventListener("visibilitychange", begin);
addEventListener("pageshow", (event) => event.persisted && begin());
addEventListener("pagehide", end);

// The search: its address can be sent, and the server has the rows.

const search = find("#search");
let typing;

function searched() {
  const query = new URLSearchParams(new FormData(search));
  for (const [name, value] of [...query]) if (!value) query.delete(name);
  const words = query.size ? `?${query}` : "";
  if (words === location.search) return;
  history.replaceState(null, "", `${location.pathname}${words}${location.hash}`);
  begin();
}

if (hasStream) {
  search.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(searched, 250);
  });
  search.addEventListener("submit", (event) => {
    event.preventDefault();
    searched();
  });
}

document.addEventListener("keydown", (event) => {
  const isTyping = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.nodeName);
  if (event.key === "/" && !isTyping && !find("dialog[open]")) {
    event.preventDefault();
    find("input", search).focus();
  }
});

// A bar of the runs in a row leads to what is said of that run.

document.addEventListener("click", (event) => {
  const strip = event.target.closest?.("a.runs svg");
  if (strip) {
    event.preventDefault();
    const bars = strip.viewBox.baseVal.width / 6;
    const box = strip.getBoundingClientRect();
    const bar = Math.min(bars - 1, Math.floor(((event.clientX - box.left) / box.width) * bars));
    location.href = `${strip.closest("a").href.split("#")[0]}#run-${bars - 1 - bar}`;
  }
  const button = event.target.closest?.("button[data-do]");
  if (button) ask(button);
});

// Actions: each is confirmed in a dialog that says what it does.

const dialog = find("#ask");

function subjectOf(button) {
  const link = find("th a", button.closest("tr") ?? document.createElement("p"));
  return new URL(link?.href ?? location.href).searchParams.get("name");
}

/** The name of the operator, which this browser remembers if it may. */
const operator = {
  get() {
    try {
      return localStorage.getItem("by") ?? "";
    } catch {
      return "";
    }
  },
  set(name) {
    try {
      localStorage.setItem("by", name);
    } catch {
      // It is asked for again.
    }
  },
};

function hidden(form, name, value) {
  const input = document.createElement("input");
  Object.assign(input, { type: "hidden", name, value });
  form.append(input);
}

function ask(button) {
  const verb = button.dataset.do;
  const template = find(`#do-${verb}`);
  // The page is from before its reader was allowed to operate.
  if (!template) {
    location.reload();
    return;
  }
  dialog.replaceChildren(template.content.cloneNode(true));
  const form = find("form", dialog);
  const subject = subjectOf(button);
  find(".subject", form).textContent = button.dataset.tick ? `${subject}, ${moment(Date.parse(button.dataset.tick))}` : subject;
  hidden(form, verb === "release" ? "key" : "job", subject);
  if (button.dataset.tick) hidden(form, "tick", button.dataset.tick);
  find("[name=by]", form).value = operator.get();
  find(".leaves", form).addEventListener("click", () => dialog.close());
  find(".counts", form)?.addEventListener("click", () => counted(form));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    act(form);
  });
  dialog.showModal();
  find("input:not([type=hidden])", form).focus();
}

/** Returns what a form says, with its moments in UTC. */
function fields(form) {
  const said = new URLSearchParams();
  for (const [name, value] of new FormData(form)) {
    const isMoment = find(`[name="${name}"]`, form).type === "datetime-local";
    if (value !== "") said.set(name, isMoment ? new Date(value).toISOString() : value);
  }
  return said;
}

async function counted(form) {
  const output = find("output", form);
  try {
    const answer = await fetch(`actions/backfill/count?${fields(form)}`, { headers: { accept: "application/json" } });
    output.textContent = (await answer.json()).message;
  } catch {
    output.textContent = "the console does not answer";
  }
}

async function act(form) {
  const [does, outcome] = [find(".does", form), find(".outcome", form)];
  const said = fields(form);
  if (said.has("by")) operator.set(said.get("by"));
  does.disabled = true;
  outcome.className = "outcome";
  outcome.textContent = "…";
  let isDone = false;
  let message = "the console does not answer; whether it was done is not known";
  try {
    const answer = await fetch(form.action, { method: "POST", body: said, headers: { accept: "application/json" } });
    const isJson = answer.headers.get("content-type")?.includes("json");
    ({ done: isDone, message } = isJson ? await answer.json() : { done: false, message: await answer.text() });
  } catch {
    // The message says so.
  }
  outcome.textContent = message;
  outcome.classList.add(isDone ? "done" : "not-done");
  does.disabled = false;
  if (isDone) {
    does.remove();
    const leave = find(".leaves", form);
    leave.textContent = "Close";
    leave.focus();
  }
}

// The bar of a row knows the place of its run only; from here on it is called by its tick.
const place = /^#run-(\d+)$/.exec(location.hash);
const run = place && all("#runs tbody tr")[place[1]];
if (run) location.replace(`#${run.id}`);

countAll(document);
find("#looked")?.append(` in ${zone}`);
begin();
