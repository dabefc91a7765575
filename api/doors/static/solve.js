// Solve a problem: bounds as they come, what the answer is worth, and the plan from all sides.

import { chart } from "./chart.js";
import { $, download, fail, onFile, options, picture, safely } from "./dom.js";
import { ask, events, joined, request } from "./net.js";

let problem = "", file = "", running = null, shown = null;

// Values of the objective in words: seconds where it is a time.
function unitOf(document) {
  const timed = ["weighted_completion", "mean_jct", "makespan"].includes(document.goal);
  const unnamed = (document.cluster?.topology?.levels ?? []).some((level) => level.bandwidth <= 1000);
  return document.goal ? timed : !unnamed;
}

function words(value, seconds) {
  if (value == null) return "none yet";
  const size = Math.abs(value);
  const [scale, unit] = !seconds || !size ? [1, seconds ? " s" : ""] : size < 1e-3 ? [1e6, " µs"] : size < 1 ? [1e3, " ms"]
    : size < 7200 ? [1, " s"] : [1 / 3600, " h"];
  return `${+(value * scale).toPrecision(5)}${unit}`;
}

const textOf = async (path) => (await request("GET", path)).text();
const percent = (gap) => `${+(100 * gap).toPrecision(3)}%`;

function standingOf(answer, state) {
  const by = answer.standing?.match(/claimed by ([^)]*)/)?.[1];
  const stopped = state === "cancelled" ? "It was cancelled." : answer.status === "OPTIMAL" || answer.stop_reason === "proved" ? "" : `It ended: ${answer.stop_reason.replace("_", " ")}.`;
  const said = {
    OPTIMAL: answer.standing?.includes("(certified)")
      ? "Optimal, certified: the proof was checked in exact arithmetic, without a solver."
      : `Optimal, claimed${by ? ` by ${by}` : ""}: no certificate was checked.`,
    FEASIBLE: answer.gap == null ? "Feasible, without a bound." : `Feasible: no plan is more than ${percent(answer.gap)} better.`,
    INFEASIBLE: "Infeasible: there is no plan.",
  }[answer.status] ?? `No plan: ${answer.status.toLowerCase()}.`;
  return [said, stopped, ...(answer.conflict ?? [])].filter(Boolean).join(" ");
}

function tell(row, seconds) {
  const gap = row.gap == null ? "" : `, gap ${percent(row.gap)}`;
  const all = row.certified >= row.bound - 1e-6 * Math.abs(row.bound);
  const proved = row.certified == null ? "" : !row.certified ? " (not certified)" : all ? " (certified)" : `, ${words(row.certified, seconds)} of it certified`;
  $("figures").textContent = `After ${+(row.seconds ?? row.wall_seconds).toFixed(1)} s: best plan ${words(row.objective, seconds)}, bound ${words(row.bound, seconds)}${proved}${gap}.`;
}

async function run() {
  if (file === "") problem = await textOf(`/v1/examples/${$("example").value}`);
  const limit = Number($("seconds").value), seconds = unitOf(JSON.parse(problem)), rows = [], mine = problem;
  const objective = $("objective").value;
  const body = joined({ problem: mine }, { objective, time_limit: limit, wait: 0, certify: $("certify").checked });
  $("plan").hidden = true;
  let came = 0, over = false;
  const redraw = () => {
    const now = (rows.at(-1)?.seconds ?? 0) + (over ? 0 : (performance.now() - came) / 1000);
    chart($("chart"), rows, now, over ? 0 : limit, (value) => words(value, seconds));
  };
  redraw();
  $("figures").textContent = "";
  const begun = await ask("POST", "/v1/solve", body);
  running = begun.id;
  $("cancel").disabled = false;
  $("standing").textContent = "Solving …";
  const timer = setInterval(redraw, 200);
  window.onresize = redraw;
  try {
    for await (const [kind, row] of events(`/v1/solves/${begun.id}/progress`)) {
      if (kind !== "end") {
        rows.push(row);
        came = performance.now();
        tell(row, seconds);
        continue;
      }
      if (!row.answer) {
        $("standing").textContent = row.state === "cancelled" ? "It was cancelled before it began." : "It failed.";
        if (row.error) throw new Error(`${row.error.field}: ${row.error.problem}`);
        return;
      }
      const { answer } = row;
      rows.push({ seconds: answer.wall_seconds, objective: answer.objective, bound: answer.bound });
      $("standing").textContent = standingOf(answer, row.state);
      tell(answer, seconds);
      if (!answer.plan) return;
      shown = { problem: mine, objective, answer, plan: await textOf(`/v1/solves/${begun.id}/plan`) };
      await show();
    }
  } finally {
    over = true;
    clearInterval(timer);
    redraw();
    running = null;
    $("cancel").disabled = true;
  }
}

async function show(panel = "") {
  const { problem, plan, objective, answer } = shown;
  const rest = { status: answer.standing ?? answer.status, bound: answer.bound, objective, panel };
  const found = await ask("POST", "/v1/picture", joined({ problem, plan }, rest));
  shown.svg = found.svg;
  options($("panel"), [["", "all"], ...found.panels.map((name) => [name, name])]);
  $("panel").value = panel;
  $("plan").hidden = false;
  picture($("plan-picture"), found.svg);
}

export async function start() {
  const { examples } = await ask("GET", "/v1/examples");
  options($("example"), examples.map(({ name, title }) => [name, title]));
}

$("solve-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  if (running) return;
  $("standing").textContent = "It is sent.";
  running = "…";
  await safely(run)();
  running = null;
  if (!$("error").hidden && /sent/.test($("standing").textContent)) $("standing").textContent = "It was refused.";
});
$("cancel").addEventListener("click", safely(async () => {
  $("cancel").disabled = true;
  $("standing").textContent = "It ends with the best plan so far.";
  await ask("DELETE", `/v1/solves/${running}`);
}));
$("panel").addEventListener("change", safely(() => show($("panel").value)));
$("plan-json").addEventListener("click", () => download("plan.json", shown.plan, "application/json"));
$("plan-svg").addEventListener("click", () => download("plan.svg", shown.svg, "image/svg+xml"));
onFile($("problem-file"), $("solve-form"), (text, name) => {
  const { kind } = JSON.parse(text);
  problem = text;
  file = name;
  options($("example"), [["", name], ...[...$("example").options].filter((x) => x.value).map((x) => [x.value, x.text])]);
  $("example").value = "";
  $("standing").textContent = `${name} is chosen: ${kind}.`;
});
$("example").addEventListener("change", () => {
  file = $("example").value ? "" : file;
  fail(null);
});
