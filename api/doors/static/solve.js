// Solve a problem: plans and bounds as they come, what the answer is worth, and the plan from all sides.

import { $, download, onFile, options, picture, safely } from "./dom.js";
import { ask, events, joined, request } from "./net.js";

// of the document that was chosen: its text, or why there is none
let file = "", wrong = new Error("document: none is chosen"), running = null, shown = null;

const percent = (gap) => `${+(100 * gap).toPrecision(3)}%`;
const textOf = async (path) => (await request("GET", path)).text();

// Whether the objective of a problem is seconds; some files have times in a unit of their own.
function isTimed({ goal, cluster }) {
  const unnamed = (cluster?.topology?.levels ?? []).some((level) => level.bandwidth <= 1000);
  return goal ? ["weighted_completion", "mean_jct", "makespan"].includes(goal) : !unnamed;
}

function words(value, seconds) {
  if (value == null) return "none yet";
  const size = Math.abs(value), units = [[1e-6, 1e-3, " µs"], [1e-3, 1, " ms"], [1, 7200, " s"], [3600, Infinity, " h"]];
  const [scale, , unit] = !seconds ? [1, 0, ""] : size ? units.find(([, most]) => size < most) : units[2];
  return `${+(value / scale).toPrecision(5)}${unit}`;
}

function standingOf(answer, state) {
  const by = answer.standing?.match(/(claimed|proved) by [^)]*/)?.[0] ?? "claimed", certified = answer.standing?.includes("(certified)");
  const stopped = state === "cancelled" ? "It was cancelled." : ["OPTIMAL", "INFEASIBLE"].includes(answer.status) ? ""
    : `It ended: ${answer.stop_reason.replace("_", " ")}.`;
  const said = {
    OPTIMAL: certified ? "Optimal, certified: the proof was checked in exact arithmetic, without a solver." : `Optimal, ${by}: no certificate was checked.`,
    FEASIBLE: answer.gap == null ? "Feasible, without a bound." : `Feasible: no plan is more than ${percent(answer.gap)} better.`,
    INFEASIBLE: "Infeasible: there is no plan.",
  }[answer.status] ?? `No plan: ${answer.status.toLowerCase()}.`;
  return [said, stopped, ...(answer.conflict ?? [])].filter(Boolean).join(" ");
}

function tell(row, seconds) {
  const gap = row.gap == null ? "" : `, gap ${percent(row.gap)}`, all = row.certified >= row.bound - 1e-6 * Math.abs(row.bound);
  const proved = row.certified == null ? "" : !row.certified ? " (not certified)" : all ? " (certified)" : `, ${words(row.certified, seconds)} of it certified`;
  $("figures").textContent = `After ${+(row.seconds ?? row.wall_seconds).toFixed(1)} s: best plan ${words(row.objective, seconds)}, bound ${words(row.bound, seconds)}${proved}${gap}.`;
}

async function run() {
  const example = $("example").value;
  if (!example && wrong) throw wrong;
  const mine = example ? await textOf(`/v1/examples/${example}`) : file, objective = $("objective").value, limit = Number($("seconds").value);
  const seconds = isTimed(JSON.parse(mine)), rows = [];
  let came = 0, over = false, drawn = Promise.resolve(), waits = false;
  // One after the other; who waits for its turn sees what is so then.
  const redraw = safely(async () => {
    if (waits) return;
    waits = true;
    await drawn.catch(() => {});
    waits = false;
    $("chart").hidden = !rows.some((row) => row.objective != null || row.bound != null);
    if ($("chart").hidden) return;
    const now = rows.at(-1).seconds + (over ? 0 : (performance.now() - came) / 1000);
    const body = { progress: rows, now, until: over ? 0 : limit, width: $("chart").clientWidth, unit: seconds ? "s" : "" };
    drawn = ask("POST", "/v1/picture", body);
    picture($("chart"), (await drawn).svg);
  });
  redraw();
  $("plan").hidden = true;
  $("figures").textContent = "";
  const body = joined({ problem: mine }, { objective, time_limit: limit, wait: 0, certify: $("certify").checked });
  running = (await ask("POST", "/v1/solve", body)).id;
  const path = `/v1/solves/${running}`, timer = setInterval(redraw, 1000);
  window.onresize = redraw;
  $("cancel").disabled = false;
  $("standing").textContent = "Solving …";
  try {
    for await (const [kind, row] of events(`${path}/progress`)) {
      if (kind === "end") return await end(row, { problem: mine, objective, path }, rows, seconds);
      rows.push(row);
      came = performance.now();
      tell(row, seconds);
      redraw();
    }
    throw new Error("service: broke off; the solve may still run");
  } finally {
    over = true;
    clearInterval(timer);
    redraw();
    $("cancel").disabled = true;
  }
}

async function end({ state, answer, error }, { problem, objective, path }, rows, seconds) {
  $("standing").textContent = answer ? standingOf(answer, state) : state === "cancelled" ? "It was cancelled before it had a plan." : "It failed.";
  if (!answer && state !== "cancelled") throw new Error(`${error.field}: ${error.problem}`);
  if (!answer) return;
  rows.push({ seconds: answer.wall_seconds, objective: answer.objective, bound: answer.bound });
  tell(answer, seconds);
  if (!answer.plan) return;
  const plan = await textOf(`${path}/plan`), rest = { status: answer.standing ?? answer.status, bound: answer.bound, objective };
  const { svg, panels } = await ask("POST", "/v1/picture", joined({ problem, plan }, rest));
  shown = { plan, panels: { all: svg, ...panels } };
  options($("panel"), Object.keys(shown.panels).map((name) => [name, name]));
  $("panel").value = "all";
  $("plan").hidden = false;
  show();
}

const show = () => picture($("plan-picture"), shown.panels[$("panel").value]);

// What there is to choose from; the document has no value.
const listed = () => [...$("example").options].map(({ value, text }) => [value, text]);

export async function start() {
  const { examples } = await ask("GET", "/v1/examples");
  options($("example"), [...listed(), ...examples.map(({ name, title }) => [name, title])]);
}

$("solve-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  if (running) return;
  running = "…";
  $("standing").textContent = "It is sent.";
  await safely(run)();
  if ($("standing").textContent === "It is sent.") $("standing").textContent = "It was refused.";
  running = null;
});
$("cancel").addEventListener("click", safely(async () => {
  $("cancel").disabled = true;
  $("standing").textContent = "It ends with the best plan so far.";
  await ask("DELETE", `/v1/solves/${running}`);
}));
$("panel").addEventListener("change", show);
$("plan-json").addEventListener("click", () => download("plan.json", shown.plan, "application/json"));
$("plan-svg").addEventListener("click", () => download("plan.svg", shown.panels[$("panel").value], "image/svg+xml"));
onFile($("problem-file"), $("solve-form"), (text, name) => {
  const kind = JSON.parse(text)?.kind;
  if (!kind) throw new Error(`${name}: is no document: it has no kind`);
  [file, wrong] = [text, null];
  $("standing").textContent = `${name} is chosen: ${kind}.`;
}, (name, error) => {
  wrong = error;
  options($("example"), [["", name], ...listed().filter(([value]) => value)]);
  $("example").value = "";
  $("standing").textContent = `${name} is not chosen.`;
});
