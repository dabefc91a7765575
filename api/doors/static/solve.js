// Solve a problem: bounds as they come, what the answer is worth, and the plan from all sides.

import { chart } from "./chart.js";
import { $, download, fail, onFile, options, picture, safely } from "./dom.js";
import { ask, events } from "./net.js";

let problem = null, file = "", running = null, shown = null;

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

const percent = (gap) => `${+(100 * gap).toPrecision(3)}%`;

function standingOf(answer, state) {
  const by = answer.standing?.match(/claimed by ([^)]*)/)?.[1];
  const stopped = state === "cancelled" ? "It was cancelled." : answer.stop_reason === "proved" ? "" : `It ended: ${answer.stop_reason.replace("_", " ")}.`;
  const said = {
    OPTIMAL: answer.standing?.includes("(certified)")
      ? "Optimal, certified: the proof was checked in exact arithmetic, without a solver."
      : `Optimal, claimed${by ? ` by ${by}` : ""}: no checked certificate shows it.`,
    FEASIBLE: answer.gap == null ? "Feasible, without a bound." : `Feasible: at most ${percent(answer.gap)} above the best possible.`,
    INFEASIBLE: "Infeasible: there is no plan.",
  }[answer.status] ?? `No plan: ${answer.status.toLowerCase()}.`;
  return [said, stopped, ...(answer.conflict ?? [])].filter(Boolean).join(" ");
}

function tell(row, seconds) {
  const gap = row.gap == null ? "" : `, gap ${percent(row.gap)}`;
  const proved = row.certified == null ? "" : `, ${words(row.certified, seconds)} of it certified`;
  $("figures").textContent = `After ${+(row.seconds ?? row.wall_seconds).toFixed(1)} s: best plan ${words(row.objective, seconds)}, bound ${words(row.bound, seconds)}${proved}${gap}.`;
}

async function run() {
  if (file === "") problem = await ask("GET", `/v1/examples/${$("example").value}`);
  const limit = Number($("seconds").value), seconds = unitOf(problem), rows = [], mine = problem;
  const body = { problem: mine, time_limit: limit, wait: 0, certify: $("certify").checked };
  const objective = $("objective").value;
  if (objective) body.objective = objective;
  $("plan").hidden = true;
  const redraw = () => chart($("chart"), rows, limit, (value) => words(value, seconds));
  redraw();
  $("figures").textContent = "";
  const begun = await ask("POST", "/v1/solve", body);
  running = begun.id;
  $("cancel").disabled = false;
  $("standing").textContent = "It is solved now.";
  const resized = new ResizeObserver(redraw);
  resized.observe($("chart"));
  window.addEventListener("resize", redraw);
  let drawn = 0;
  try {
    for await (const [kind, row] of events(`/v1/solves/${begun.id}/progress`)) {
      if (kind !== "end") {
        rows.push(row);
        tell(row, seconds);
        if (performance.now() > drawn + 50) {
          redraw();
          drawn = performance.now();
        }
        continue;
      }
      if (!row.answer) {
        $("standing").textContent = row.state === "cancelled" ? "It was cancelled before it began." : "It failed.";
        if (row.error) throw new Error(`${row.error.field}: ${row.error.problem}`);
        return;
      }
      const { answer } = row;
      rows.push({ seconds: answer.wall_seconds, objective: answer.objective, bound: answer.bound });
      redraw();
      $("standing").textContent = standingOf(answer, row.state);
      tell(answer, seconds);
      shown = { problem: mine, objective, answer };
      if (answer.plan) await show();
    }
  } finally {
    running = null;
    $("cancel").disabled = true;
  }
}

async function show(panel = "") {
  const { problem, objective, answer } = shown;
  const body = { problem, plan: answer.plan, status: answer.standing ?? answer.status, bound: answer.bound, objective, panel };
  for (const name of Object.keys(body)) if (body[name] == null || body[name] === "") delete body[name];
  const found = await ask("POST", "/v1/picture", body);
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
$("plan-json").addEventListener("click", () => download("plan.json", JSON.stringify(shown.answer.plan, null, 1), "application/json"));
$("plan-svg").addEventListener("click", () => download("plan.svg", shown.svg, "image/svg+xml"));
onFile($("problem-file"), $("solve-form"), (text, name) => {
  problem = JSON.parse(text);
  file = name;
  options($("example"), [["", name], ...[...$("example").options].filter((x) => x.value).map((x) => [x.value, x.text])]);
  $("example").value = "";
  $("standing").textContent = `${name} is chosen: a ${problem.kind} problem.`;
});
$("example").addEventListener("change", () => {
  file = $("example").value ? "" : file;
  fail(null);
});
