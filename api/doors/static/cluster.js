// A session of the service: who holds what, who waits, and why.

import { $, make, options, picture, safely } from "./dom.js";
import { ask, request } from "./net.js";
import { replay } from "./replay.js";

const EXAMPLE = "example", MOST = 200, shades = new Map();
let timer = 0;

// A job keeps its colour, by its number in `known`, while the page is open.
export async function drawCluster(box, { cluster, held, down }, known) {
  for (const job in held) if (!known.has(job)) known.set(job, known.size);
  const colours = Object.fromEntries(Object.keys(held).map((job) => [job, known.get(job)]));
  picture(box, (await ask("POST", "/v1/picture", { cluster, held, down, colours })).svg);
}

const path = (rest) => `/v1/sessions/${encodeURIComponent($("session").value)}/${rest}`;
const why = safely(async (event) => {
  $("why").textContent = (await ask("POST", path("events"), event)).text;
});

function jobs(list, names, none) {
  const focused = list.contains(document.activeElement) ? document.activeElement.textContent : null;
  const rows = names.slice(0, MOST).map((name) => {
    const row = make("li", "");
    row.append(make("button", name, { type: "button", onclick: () => why({ event: "explain", what: name }) }));
    return row;
  });
  if (names.length > MOST) rows.push(make("li", `and ${names.length - MOST} more`));
  list.replaceChildren(...(rows.length ? rows : [make("li", none)]));
  if (focused) [...list.querySelectorAll("button")].find((x) => x.textContent === focused)?.focus();
}

async function refresh() {
  if (!$("session").value) return;
  const state = await ask("GET", path("cluster")), running = Object.keys(state.held);
  const down = state.down.length ? `; down: ${state.down.join(", ")}` : "";
  $("cluster-now").textContent = `At ${+state.now.toFixed(3)} s: ${running.length} run, ${state.waiting.length} wait${down}.`;
  jobs($("waiting"), state.waiting, "nobody waits");
  jobs($("running"), running, "nobody runs");
  await drawCluster($("cluster-picture"), state, shades);
}

export async function start() {
  const { sessions } = await ask("GET", "/v1/sessions");
  options($("session"), sessions.length ? sessions.map((name) => [name, name]) : [["", "none yet"]]);
  $("session-replay").disabled = !sessions.length;
  $("session-example").disabled = sessions.includes(EXAMPLE);
  await refresh();
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
  $("follow").checked = false;
}

$("session").addEventListener("change", safely(refresh));
$("refresh").addEventListener("click", safely(start));
$("session-example").addEventListener("click", safely(example));
$("session-replay").addEventListener("click", safely(async () => {
  const log = await (await request("GET", path("log"))).text();
  location.hash = "replay";
  await replay(log);
}));
$("follow").addEventListener("change", () => {
  clearInterval(timer);
  if ($("follow").checked) timer = setInterval(safely(refresh), 2000);
});
$("whatif").addEventListener("submit", (event) => {
  event.preventDefault();
  const [gpus, seconds] = ["whatif-gpus", "whatif-seconds"].map((id) => Number($(id).value));
  why({ event: "whatif", job: `a job of ${gpus} GPUs`, gpus, seconds });
});
