// The best plan and the bound over time, drawn as they come.

const NS = "http://www.w3.org/2000/svg";

function draw(parent, tag, look, text) {
  const found = document.createElementNS(NS, tag);
  for (const [name, value] of Object.entries(look)) found.setAttribute(name, value);
  if (text !== undefined) found.textContent = text;
  parent.append(found);
  return found;
}

function ticks(low, high, count) {
  const raw = (high - low) / count || 1, size = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((k) => k * size).find((s) => s >= raw * 0.999);
  return Array.from({ length: Math.floor(high / step + 1e-9) - Math.ceil(low / step - 1e-9) + 1 },
    (_, i) => (Math.ceil(low / step - 1e-9) + i) * step);
}

// The values that matter: around the gap; the first plans and bounds may be far off.
function range(rows) {
  const last = (key) => rows.findLast((row) => row[key] != null)?.[key];
  const best = last("objective") ?? last("bound"), bound = last("bound") ?? best;
  const room = Math.max(1.5 * Math.abs(best - bound), 0.1 * Math.abs(best)) || 1;
  const near = rows.flatMap((row) => [row.objective, row.bound]).filter((v) => v != null && v > bound - room && v < best + room);
  const low = Math.min(...near), high = Math.max(...near), edge = 0.15 * (high - low) || 0.05 * Math.abs(best) || 1;
  return [low - edge, high + edge];
}

// Until `limit`, or as far as it went if there is none any more.
export function chart(box, rows, now, limit, words) {
  box.hidden = !rows.some((row) => row.objective != null || row.bound != null);
  if (box.hidden || !box.clientHeight) return;
  const [width, height, left, top, foot] = [box.clientWidth, box.clientHeight, 84, 22, 26];
  const [low, high] = range(rows), end = limit ? Math.max(limit, now) : now;
  const x = (t) => left + (t / end) * (width - left - 12);
  const y = (v) => top + (1 - (v - low) / (high - low)) * (height - top - foot);
  const svg = document.createElementNS(NS, "svg");
  for (const v of ticks(low, high, 4)) {
    draw(svg, "path", { class: "grid", d: `M${left} ${y(v)}H${width - 12}` });
    draw(svg, "text", { class: "end", x: left - 8, y: y(v) + 4 }, words(v));
  }
  for (const t of ticks(0, end, Math.max(2, width / 120))) {
    draw(svg, "text", { class: "middle", x: x(t), y: height - 8 }, `${+t.toPrecision(6)} s`);
  }
  const inner = draw(svg, "svg", { x: 0, y: top, width, height: height - top - foot, viewBox: `0 ${top} ${width} ${height - top - foot}` });
  const steps = (key) => {
    const found = rows.filter((row) => row[key] != null);
    const parts = found.map((row, i) => (i ? `H${x(row.seconds)}V${y(row[key])}` : `M${x(row.seconds)} ${y(row[key])}`));
    return parts.length ? `${parts.join("")}H${x(now)}` : "";
  };
  const both = rows.filter((row) => row.objective != null && row.bound != null);
  if (both.length) {
    const from = x(both[0].seconds);
    const up = both.map((row, i) => (i ? `H${x(row.seconds)}V${y(row.objective)}` : `M${from} ${y(row.objective)}`)).join("");
    const down = both.toReversed().map((row) => `V${y(row.bound)}H${x(row.seconds)}`).join("");
    draw(inner, "path", { class: "gap", d: `${up}H${x(now)}${down}Z` });
  }
  draw(inner, "path", { class: "bound", d: steps("bound") });
  draw(inner, "path", { class: "plan", d: steps("objective") });
  draw(svg, "path", { class: "plan", d: `M${left} 9h22` });
  draw(svg, "text", { x: left + 28, y: 13 }, "best plan");
  draw(svg, "path", { class: "bound", d: `M${left + 106} 9h22` });
  draw(svg, "text", { x: left + 134, y: 13 }, width > 480 ? "bound: no plan is better" : "bound");
  box.replaceChildren(svg);
}
