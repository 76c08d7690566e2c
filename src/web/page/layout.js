// SPDX-License-Identifier: Apache-2.0
// Where the points of a network are drawn. It follows from their names and edges alone, so the picture is the same at every visit:
// distances on the paper become like distances in hops (stress majorization: Gansner, Koren, North 2004), from a circle by name.

const SWEEPS = 120;
const FEW = 250; // more points get fewer sweeps, in proportion

function hops(n, near) {
  const all = [];
  for (let from = 0; from < n; from++) {
    const far = new Float64Array(n).fill(Infinity);
    far[from] = 0;
    const queue = [from];
    for (let i = 0; i < queue.length; i++) for (const to of near[queue[i]]) if (far[to] === Infinity) { far[to] = far[queue[i]] + 1; queue.push(to); }
    all.push(far);
  }
  const longest = Math.max(1, ...all.map((row) => row.reduce((a, b) => (b < Infinity ? Math.max(a, b) : a), 0)));
  for (const row of all) row.forEach((d, i) => { if (d === Infinity) row[i] = longest + 1; });
  return all;
}

function sweep(x, y, far) {
  for (let i = 0; i < x.length; i++) {
    let sx = 0, sy = 0, weight = 0;
    for (let j = 0; j < x.length; j++) {
      if (i === j) continue;
      const d = far[i][j], w = 1 / (d * d);
      const dx = x[i] - x[j], dy = y[i] - y[j], now = Math.hypot(dx, dy) || 1e-9;
      sx += w * (x[j] + (d * dx) / now);
      sy += w * (y[j] + (d * dy) / now);
      weight += w;
    }
    if (weight) { x[i] = sx / weight; y[i] = sy / weight; }
  }
}

/** Turns the long side of the picture to the horizontal, the first name to the left and the second upwards. */
function turn(x, y) {
  const n = x.length, mx = x.reduce((a, b) => a + b, 0) / n, my = y.reduce((a, b) => a + b, 0) / n;
  let xx = 0, yy = 0, xy = 0;
  for (let i = 0; i < n; i++) { xx += (x[i] - mx) ** 2; yy += (y[i] - my) ** 2; xy += (x[i] - mx) * (y[i] - my); }
  const angle = Math.atan2(2 * xy, xx - yy) / 2, c = Math.cos(angle), si = Math.sin(angle);
  for (let i = 0; i < n; i++) { const [a, b] = [x[i] - mx, y[i] - my]; x[i] = c * a + si * b; y[i] = c * b - si * a; }
  if (x[0] > 0) for (let i = 0; i < n; i++) x[i] = -x[i];
  if (n > 1 && y[1] > 0) for (let i = 0; i < n; i++) y[i] = -y[i];
}

let last = {key: null, places: null}; // it stays the same as long as the network does

/** points: names; edges: [from, to]. Returns a Map of name to {x, y}, each between 0 and 1. */
export function layout(points, edges) {
  const names = [...new Set(points)].sort();
  const key = JSON.stringify([names, edges]);
  if (last.key !== key) last = {key, places: place(names, edges)};
  return new Map(last.places);
}

function place(names, edges) {
  const index = new Map(names.map((one, i) => [one, i]));
  const near = names.map(() => new Set());
  for (const [from, to] of edges) {
    if (!index.has(from) || !index.has(to) || from === to) continue;
    near[index.get(from)].add(index.get(to));
    near[index.get(to)].add(index.get(from));
  }
  const n = names.length, far = hops(n, near.map((set) => [...set].sort((a, b) => a - b)));
  const x = names.map((_, i) => Math.cos((2 * Math.PI * i) / n) * Math.sqrt(n)), y = names.map((_, i) => Math.sin((2 * Math.PI * i) / n) * Math.sqrt(n));
  const sweeps = n <= FEW ? SWEEPS : Math.max(10, Math.floor((SWEEPS * FEW * FEW) / (n * n)));
  for (let i = 0; i < sweeps; i++) sweep(x, y, far);
  if (n) turn(x, y);
  return fit(new Map(names.map((one, i) => [one, {x: x[i], y: y[i]}])));
}

/** Moves positions into the unit square. */
export function fit(places) {
  const all = [...places.values()];
  const side = (key) => { const values = all.map((p) => p[key]); const low = Math.min(...values); return [low, Math.max(...values) - low]; };
  const [[lowX, sizeX], [lowY, sizeY]] = [side('x'), side('y')];
  const part = (value, low, size, other) => (size > other * 1e-6 ? (value - low) / size : 0.5); // in the middle if all are on one line
  return new Map([...places].map(([one, p]) => [one, {x: part(p.x, lowX, sizeX, sizeY), y: part(p.y, lowY, sizeY, sizeX)}]));
}
