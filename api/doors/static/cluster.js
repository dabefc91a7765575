// A session of the service: who holds what, who waits, and why.

import { $, make, options, picture, safely } from "./dom.js";
import { ask, request } from "./net.js";
import { replay } from "./replay.js";

const EXAMPLE = "example";
const shades = new Map();
let timer = 0;

// A job keeps its colour while it is known.
export function shadesOf(held, known) {
  for (const job of Object.keys(held)) if (!known.has(job)) known.set(job, known.size);
  return Object.fromEntries(Object.keys(held).map((job) => [job, known.get(job)]));
}

export async function drawCluster(box, { cluster, held, down }, known) {
  const body = { cluster, held, down, colours: shadesOf(held, known) };
  picture(box, (await ask("POST", "/v1/picture", body)).svg);
}

const path = (rest) => `/v1/sessions/${encodeURIComponent($("session").value)}/${rest}`;

async function why(event) {
  const found = await ask("POST", path("events"), event);
  if (found.error) throw new Error(`${found.error.field}: ${found.error.problem}`);
  $("why").textContent = found.text;
}

function jobs(list, names, none) {
  const focused = list.contains(document.activeElement) ? document.activeElement.textContent : null;
  const rows = names.slice(0, 200).map((name) => {
    const row = make("li", "");
    row.append(make("button", name, { type: "button", onclick: safely(() => why({ event: "explain", what: name })) }));
    return row;
  });
  if (names.length > 200) rows.push(make("li", `and ${names.length - 200} more`));
  list.replaceChildren(...(rows.length ? rows : [make("li", none)]));
  if (focused) [...list.querySelectorAll("button")].find((x) => x.textContent === focused)?.focus();
}

async function refresh() {
  if (!$("session").value) return;
  const state = await ask("GET", path("cluster"));
  const down = state.down.length ? `; down: ${state.down.join(", ")}` : "";
  const count = Object.keys(state.held).length;
  $("cluster-now").textContent = `At ${+state.now.toFixed(3)} s: ${count} run, ${state.waiting.length} wait${down}.`;
  jobs($("waiting"), state.waiting, "nobody waits");
  jobs($("running"), Object.keys(state.held), "nobody runs");
  await drawCluster($("cluster-picture"), state, shades);
}

async function names(chosen) {
  const { sessions } = await ask("GET", "/v1/sessions");
  options($("session"), sessions.length ? sessions.map((name) => [name, name]) : [["", "none yet"]]);
  if (chosen) $("session").value = chosen;
  $("session-replay").disabled = !sessions.length;
  $("session-example").disabled = sessions.includes(EXAMPLE);
}

// A small cluster of a few days: gangs of all sizes come, a node fails, one is drained.
async function example() {
  await ask("PUT", `/v1/sessions/${EXAMPLE}`, { cluster: { racks: 2, nodes: 4, gpus: 8 } });
  const sizes = [8, 16, 4, 2, 32, 8, 1, 8, 16, 4, 8, 24], events = [];
  sizes.forEach((gpus, i) => {
    events.push({ event: "submit", now: 300 * i, job: `job${i}`, gpus, seconds: 900 * (1 + (i * 7) % 5), user: ["ann", "bob", "eve"][i % 3] }, { event: "decide" });
    if (i === 5) events.push({ event: "finish", job: "job2" }, { event: "fail_node", node: "node3" }, { event: "decide" });
    if (i === 8) events.push({ event: "finish", job: "job0" }, { event: "repair_node", node: "node3" }, { event: "drain", node: "node6", until: 7200 }, { event: "decide" });
  });
  // a service may take few events in a request
  for (let i = 0; i < events.length; i += 20) await ask("POST", `/v1/sessions/${EXAMPLE}/events`, events.slice(i, i + 20));
  await names(EXAMPLE);
  await refresh();
}

export async function start() {
  await names();
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
  const text = await (await request("GET", path("log"))).text();
  location.hash = "replay";
  await replay(text);
}));
$("follow").addEventListener("change", () => {
  clearInterval(timer);
  if ($("follow").checked) timer = setInterval(safely(refresh), 2000);
});
$("whatif").addEventListener("submit", (event) => {
  event.preventDefault();
  const [gpus, seconds] = ["whatif-gpus", "whatif-seconds"].map((id) => Number($(id).value));
  safely(why)({ event: "whatif", job: `a job of ${gpus} GPUs`, gpus, seconds });
});
