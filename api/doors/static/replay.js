// A log of a Scheduler, event by event.

import { drawCluster } from "./cluster.js";
import { $, onFile, safely } from "./dom.js";
import { ask } from "./net.js";

let found = null, shades = new Map(), timer = 0, drawing = false;

// What holds after an event: the frames up to it say what each changed.
function stateAt(step) {
  const held = {};
  let down = [], waiting = [], waits = 0;
  for (const frame of found.frames.slice(0, step + 1)) {
    for (const [job, nodes] of Object.entries(frame.held ?? {})) {
      if (nodes) held[job] = nodes;
      else delete held[job];
    }
    down = frame.down ?? down;
    waiting = frame.waiting ?? waiting;
    waits = frame.waits ?? waits;
  }
  return { cluster: found.cluster, held, down, waiting, waits };
}

async function draw() {
  if (drawing) return;
  drawing = true;
  try {
    for (let step = -1; step !== Number($("step").value);) {
      step = Number($("step").value);  // it may move on meanwhile
      const frame = found.frames[step], state = stateAt(step);
      $("step").setAttribute("aria-valuetext", frame.text);
      $("replay-now").textContent = `${step + 1} of ${found.frames.length}, at ${+frame.now.toFixed(3)} s: ${frame.text}`;
      const more = state.waits > state.waiting.length ? ` and ${state.waits - state.waiting.length} more` : "";
      $("replay-waiting").textContent = state.waits ? `Waiting: ${state.waiting.join(", ")}${more}` : "Nobody waits.";
      await drawCluster($("replay-picture"), state, shades);
    }
  } finally {
    drawing = false;
  }
}

async function go(step) {
  $("step").value = step;
  await draw();
}

export function stop() {
  clearTimeout(timer);
  timer = 0;
  $("play").textContent = "Play";
}

async function on() {
  if (!timer) return;
  await go(Number($("step").value) + 1);
  if (!timer) return;
  if (Number($("step").value) >= found.frames.length - 1) stop();
  else timer = setTimeout(next, 1000 / Number($("speed").value));
}
const next = safely(on);

export async function replay(log) {
  stop();
  found = await ask("POST", "/v1/replay", { log });
  if (!found.frames.length) throw new Error("log: has no event yet");
  // colours by the first start, the same in whatever order events are looked at
  shades = new Map();
  for (const frame of found.frames) for (const job of Object.keys(frame.held ?? {})) if (!shades.has(job)) shades.set(job, shades.size);
  $("step").max = found.frames.length - 1;
  $("player").hidden = false;
  await go(0);
}

$("step").addEventListener("input", safely(() => {
  stop();
  return draw();
}));
for (const [id, step] of [["back", -1], ["forward", 1]]) {
  $(id).addEventListener("click", safely(() => {
    stop();
    return go(Number($("step").value) + step);
  }));
}
$("play").addEventListener("click", () => {
  if (timer) return stop();
  if (Number($("step").value) >= found.frames.length - 1) $("step").value = -1;
  $("play").textContent = "Pause";
  timer = setTimeout(next, 0);
});
onFile($("log-file"), $("replay-drop"), replay);
