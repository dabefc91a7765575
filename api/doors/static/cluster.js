// A session of the service: who holds what, who waits, and why.

import { $, make, options, picture, safely } from "./dom.js";
import { ask, request } from "./net.js";
import { replay } from "./replay.js";

const EXAMPLE = "example", MOST = 200, EPOCH = 1e9, shades = new Map();
let timer = 0, ticker = 0, state = null, came = 0, asking = false;

// A job keeps its colour, by its number in `known`, while the page is open.
export async function drawCluster(box, { cluster, held, down }, known) {
  for (const job in held) if (!known.has(job)) known.set(job, known.size);
  const colours = Object.fromEntries(Object.keys(held).map((job) => [job, known.get(job)]));
  picture(box, (await ask("POST", "/v1/picture", { cluster, held, down, colours })).svg);
}

const path = (rest) => `/v1/sessions/${encodeURIComponent($("session").value)}/${rest}`;
const why = safely(async (event) => {
  $("why").textContent = "…";
  $("why").textContent = (await ask("POST", path("events"), event)).text;
});

// Seconds as people say them.
function span(seconds) {
  const units = [[86400, "d"], [3600, "h"], [60, "min"]].filter(([size]) => seconds >= size);
  return units.length ? `${+(seconds / units[0][0]).toPrecision(2)} ${units[0][1]}` : `${Math.max(0, Math.round(seconds))} s`;
}

const percent = (share) => `${+(100 * share).toPrecision(3)} %`;
// A session whose time is this machine's goes on while nothing happens.
const now = () => state.now + (state.now > EPOCH ? (Date.now() - came) / 1000 : 0);

function cells(body, rows, none) {
  const width = body.parentNode.querySelectorAll("th").length;
  body.replaceChildren(...rows.map((row) => {
    const line = make("tr", "");
    for (const each of row) {
      const cell = make("td", each instanceof Node ? "" : each);
      if (each instanceof Node) cell.append(each);
      line.append(cell);
    }
    return line;
  }));
  if (!rows.length) {
    const cell = make("td", none, { colSpan: width, className: "quiet" });
    body.append(make("tr", ""));
    body.firstChild.append(cell);
  }
}

// What a queue holds of the cluster, as a bar and in words.
function held({ share }) {
  const found = make("span", "");
  found.append(make("meter", "", { min: 0, max: 1, value: Math.min(1, share) }), percent(share));
  found.firstChild.setAttribute("aria-hidden", "true");
  return found;
}

function jobs(id, rows, total, time, none) {
  const list = $(id), focused = list.contains(document.activeElement) ? document.activeElement.textContent : null;
  cells(list, rows.map((row) => [
    make("button", row.job, { type: "button", onclick: () => why({ event: "explain", what: row.job }) }),
    row.gpus, row.user, row.queue, row.priority || "", span(now() - row.since), ...(time ? [span(row.left - (now() - state.now))] : []),
  ]), none);
  const more = total - rows.length, found = $("search").value ? "found" : "shown";
  $(`${id}-count`).textContent = more > 0 ? `${total}, ${rows.length} ${found}` : `${total}`;
  if (focused) [...list.querySelectorAll("button")].find((x) => x.textContent === focused)?.focus();
}

function tables() {
  if (!state || $("cluster").hidden) return;
  jobs("waiting", state.waiting, state.waits, false, "nobody waits");
  jobs("running", state.running, state.runs, true, "nobody runs");
}

function show() {
  const down = state.down.length ? `; down: ${state.down.join(", ")}` : "", time = state.now > EPOCH ? new Date(1000 * state.now).toLocaleTimeString() : `${+state.now.toFixed(3)} s`;
  $("cluster-now").textContent = `At ${time}: ${state.runs} run, ${state.waits} wait${down}${state.tier ? `; decided by ${state.tier}` : ""}.`;
  cells($("types"), state.types.map((x) => [x.type, x.held, x.idle, x.down || ""]), "no GPUs");
  cells($("queues"), state.queues.map((x) => [x.queue || "(none)", held(x), x.gpus, x.guaranteed === null ? "" : percent(x.guaranteed), x.most === null ? "" : percent(x.most), x.running, x.waiting]), "no jobs");
  cells($("users"), state.users.slice(0, MOST).map((x) => [x.user || "(nobody)", x.gpus, x.most ?? "", x.running, x.waiting]), "no jobs");
  tables();
}

// Ask what is so now; with `whole` also if nothing has happened since.
async function refresh(whole = true) {
  if (!$("session").value || asking) return;
  asking = true;
  try {
    const mine = `${$("session").value} ${$("search").value}`;
    const query = new URLSearchParams({ search: $("search").value, after: whole ? -1 : state?.line ?? -1 });
    const response = await request("GET", path(`cluster?${query}`));
    if (response.status === 204) return;
    [state, came] = [await response.json(), Date.now()];
    show();
    await drawCluster($("cluster-picture"), state, shades);
    if (mine !== `${$("session").value} ${$("search").value}`) setTimeout(safely(refresh));
  } finally {
    asking = false;
  }
}

function follow() {
  clearInterval(timer);
  clearInterval(ticker);
  if (!$("follow").checked) return;
  timer = setInterval(safely(() => refresh(false)), 2000);
  ticker = setInterval(tables, 5000);
}

export async function start() {
  const { sessions, reads } = await ask("GET", "/v1/sessions");
  options($("session"), sessions.length ? sessions.map((name) => [name, name]) : [["", "none yet"]]);
  $("session-replay").disabled = !sessions.length;
  $("session-example").disabled = reads || sessions.includes(EXAMPLE);
  await refresh();
  follow();
}

// Gangs of all sizes come, a node fails and is repaired, one is drained.
async function example() {
  await ask("PUT", `/v1/sessions/${EXAMPLE}`, { cluster: { racks: 2, nodes: 4, gpus: 8 } });
  const more = {
    5: [{ event: "finish", job: "job2" }, { event: "fail_node", node: "node3" }, { event: "decide" }],
    8: [{ event: "finish", job: "job0" }, { event: "repair_node", node: "node3" }, { event: "drain", node: "node6", until: 7200 }, { event: "decide" }],
  };
  for (const [i, gpus] of [8, 16, 4, 2, 32, 8, 1, 8, 16, 4, 8, 24].entries()) {
    const job = { job: `job${i}`, gpus, seconds: 900 * (1 + (i * 7) % 5), user: ["ann", "bob", "eve"][i % 3] };
    const events = [{ event: "submit", now: 300 * i, ...job }, { event: "decide" }, ...(more[i] ?? [])];
    await ask("POST", `/v1/sessions/${EXAMPLE}/events`, events);
  }
  await start();
  $("session").value = EXAMPLE;
  await refresh();
}

export function stop() {
  clearInterval(timer);
  clearInterval(ticker);
}

$("session").addEventListener("change", safely(refresh));
$("search").addEventListener("input", safely(refresh));
$("refresh").addEventListener("click", safely(start));
$("session-example").addEventListener("click", safely(example));
$("session-replay").addEventListener("click", safely(async () => {
  const log = await (await request("GET", path("log"))).text();
  location.hash = "replay";
  await replay(log);
}));
$("follow").addEventListener("change", follow);
$("whatif").addEventListener("submit", (event) => {
  event.preventDefault();
  const [gpus, seconds] = ["whatif-gpus", "whatif-seconds"].map((id) => Number($(id).value));
  why({ event: "whatif", job: `a job of ${gpus} GPUs`, gpus, seconds });
});
