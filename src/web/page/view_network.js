// SPDX-License-Identifier: Apache-2.0
// The network at a time: points, and an edge for each direction, by state; what the station says of it.
import {h, s, table, choice, visible, debounce} from './dom.js';
import {delay, percent, count, time, span, zone} from './format.js';
import {moment, iso} from './address.js';
import {layout, fit} from './layout.js';
import {STATES, badge, legend, worse, cellText, cellLink, cellColumns} from './state.js';
import {incidentList} from './incidents.js';

const WINDOWS = [['10s', 10e3], ['1min', 60e3], ['5min', 300e3], ['15min', 900e3], ['1h', 3600e3], ['24h', 86400e3]];
const LABELS = 24; // more edges than this that are not in order are not labelled one by one
const STEPS = 500; // positions of the slider
const MANY = 60; // edges: more than this are drawn thin
const FLAT = 140; // pixels: the height of a map of points that are all on one line
const CROWD = 24; // points: on a narrow map more than this have names only where something is not in order
const LETTER = 6.8; // pixels of a letter of a name, about

/** The end of the window that is shown, in ms. */
function instant(context) {
  const {state, info, range} = context;
  const given = state.query.get('at');
  const at = given ? moment(given, info.now_ns / 1e6) : NaN;
  return Number.isNaN(at) ? range.until : at;
}

function windowOf(context) {
  const word = context.state.query.get('window');
  if (word) return (WINDOWS.find(([one]) => one === word) || WINDOWS[2])[1];
  const {since, until} = context.range;
  return (WINDOWS.findLast(([, length]) => length <= (until - since) / 4) || WINDOWS[0])[1];
}

/** Positions of the points: those of the network file, or ours, from all edges of the store, so that the slider moves nothing. */
function places(network, lanes) {
  const points = [...network.points.map((p) => p.point), ...lanes.flatMap((lane) => [lane.from, ...lane.to.split('+')])];
  if (network.points.length && network.points.every((p) => typeof p.x === 'number' && typeof p.y === 'number')) return fit(new Map(network.points.map((p) => [p.point, {x: p.x, y: p.y}])));
  const adjacent = network.edges.filter((edge) => edge.adjacency !== false).map((edge) => [edge.from, edge.to]);
  const known = new Set(network.points.map((p) => p.point));
  const edges = network.source === 'lanes' || !adjacent.length ? lanes.map((lane) => [lane.from, lane.to]) : adjacent;
  return layout(known.size ? [...known] : points, edges);
}

/** A curve from a to b that leaves room for the one back. */
function curve(a, b, radius) {
  const dx = b.x - a.x, dy = b.y - a.y, length = Math.hypot(dx, dy) || 1;
  const nx = -dy / length, ny = dx / length, bend = Math.min(14, 6 + length * 0.03);
  const from = {x: a.x + (dx / length) * radius + nx * 2.5, y: a.y + (dy / length) * radius + ny * 2.5};
  const to = {x: b.x - (dx / length) * (radius + 3) + nx * 2.5, y: b.y - (dy / length) * (radius + 3) + ny * 2.5};
  const middle = {x: (a.x + b.x) / 2 + nx * bend, y: (a.y + b.y) / 2 + ny * bend};
  const r = (v) => Math.round(v * 10) / 10;
  const text = {x: nx * 12, y: 4 + ny * 14, anchor: nx > 0.4 ? 'start' : nx < -0.4 ? 'end' : 'middle'}; // beside the curve, away from the one back
  return {d: `M${r(from.x)} ${r(from.y)}Q${r(middle.x)} ${r(middle.y)} ${r(to.x)} ${r(to.y)}`, label: {x: (a.x + b.x) / 2 + nx * bend * 0.6, y: (a.y + b.y) / 2 + ny * bend * 0.6}, text,
    tip: {x: to.x, y: to.y, angle: (Math.atan2(to.y - middle.y, to.x - middle.x) * 180) / Math.PI}};
}

/** One edge for each direction in which there is a lane: its worst cell, and the packets of all. */
function directed(network) {
  const found = new Map();
  for (const edge of network.edges) {
    const cells = (edge.lanes || []).map((i) => network.cells[i]).filter(Boolean);
    if (!cells.length) cells.push({...edge, class: null, lost: null, p50: null, samples: null});
    for (const cell of cells) {
      const key = JSON.stringify([cell.from, cell.to]);
      const one = found.get(key) || {from: cell.from, to: cell.to, cell, sent: 0};
      one.sent += cell.sent || 0;
      if (worse(cell, one.cell) < 0) one.cell = cell;
      found.set(key, {...one, state: STATES[one.cell.state] ? one.cell.state : 'unknown', loss_ratio: one.cell.loss_ratio, p99: one.cell.p99});
    }
  }
  return [...found.values()];
}

function edgeElement(context, edge, cell, at, position, {most, thick, labels}) {
  const [a, b] = [position.get(edge.from), position.get(edge.to)];
  const line = curve(a, b, 9);
  const width = edge.sent > 0 ? 1.2 + thick * Math.sqrt(edge.sent / most) : 1.5;
  const bad = edge.state !== 'good';
  const text = edge.state === 'loss' ? percent(edge.loss_ratio) : edge.state === 'delay' ? delay(edge.p99) : STATES[edge.state]?.text;
  const range = at === null ? {} : {since: iso(at.from), until: iso(at.to)};
  return s('a', {href: cellLink(context, cell, range), class: `edge state-${edge.state}`, 'aria-label': cellText(cell), data: {key: `edge ${edge.from} ${edge.to}`, from: edge.from, to: edge.to, state: edge.state}},
    s('title', {}, cellText(cell)),
    s('path', {d: line.d, class: 'hit'}), s('path', {d: line.d, class: 'line', 'stroke-width': width.toFixed(1)}),
    s('path', {d: 'M3 0L-7 5V-5Z', class: 'tip', transform: `translate(${line.tip.x.toFixed(1)} ${line.tip.y.toFixed(1)}) rotate(${line.tip.angle.toFixed(1)}) scale(${(0.7 + width / 8).toFixed(2)})`}),
    bad && s('g', {transform: `translate(${line.label.x.toFixed(1)} ${line.label.y.toFixed(1)})`}, s('circle', {r: 7, class: 'sign-ground'}), s('text', {class: 'sign', y: 4}, STATES[edge.state]?.sign || '?'),
      labels && s('text', {class: 'edge-text', x: line.text.x.toFixed(1), y: line.text.y.toFixed(1), 'text-anchor': line.text.anchor}, text)));
}

/** The name is written on the side where the fewest edges are. */
function pointElement(context, point, p, neighbours, width, isNamed) {
  const [dx, dy] = neighbours.reduce(([x, y], q) => { const l = Math.hypot(q.x - p.x, q.y - p.y) || 1; return [x + (q.x - p.x) / l, y + (q.y - p.y) / l]; }, [0, 0]);
  const side = Math.abs(dx) > Math.abs(dy) * 0.8 ? (dx > 0 ? {x: -12, y: 4, anchor: 'end'} : {x: 12, y: 4, anchor: 'start'}) : dy > 0 ? {x: 0, y: -13, anchor: 'middle'} : {x: 0, y: 22, anchor: 'middle'};
  const state = point.state || 'unknown';
  const whole = visible(point.point), label = whole.length > 28 ? `${whole.slice(0, 27)}…` : whole;
  const size = label.length * LETTER, left = p.x + side.x - {start: 0, middle: size / 2, end: size}[side.anchor];
  if (left < 2 || left + size > width - 2) Object.assign(side, {x: Math.min(width - 2 - size / 2, Math.max(size / 2 + 2, p.x)) - p.x, y: dy > 0 ? -13 : 22, anchor: 'middle'});
  return s('a', {href: context.link('points', {point: point.point}), class: `node node-${/^[a-z]+$/.test(state) ? state : 'unknown'}`, 'aria-label': `point ${whole}, ${visible(state)}`, transform: `translate(${p.x.toFixed(1)} ${p.y.toFixed(1)})`, data: {key: `point ${point.point}`, point: point.point}},
    s('title', {}, `${whole}: ${visible(state)}${point.last_ns ? `, last result ${time(point.last_ns / 1e6)}` : ''}`), s('circle', {r: isNamed ? 7 : 4}),
    isNamed && s('text', {x: side.x, y: side.y, 'text-anchor': side.anchor}, label));
}

function map(context, network, all, lanes, at) {
  const width = Math.max(300, context.width - 2), narrow = width < 600;
  const side = narrow ? 46 : 90;
  const position = places(network, lanes);
  const flat = new Set([...position.values()].map((p) => p.y.toFixed(3))).size < 2; // all points on one line need no room above and below
  const height = flat ? FLAT : Math.round(Math.min(narrow ? 420 : 560, Math.max(260, width * 0.55), 180 + 60 * position.size));
  for (const [one, p] of position) position.set(one, {x: side + p.x * (width - 2 * side), y: 34 + p.y * (height - 68)});
  const known = (edge) => position.has(edge.from) && position.has(edge.to);
  const edges = all.filter(known).sort((a, b) => -worse(a, b));
  const most = Math.max(1, ...edges.map((edge) => edge.sent || 0));
  const labels = edges.filter((edge) => edge.state !== 'good').length <= LABELS && !narrow;
  const neighbours = new Map(network.points.map((p) => [p.point, []]));
  for (const edge of edges) neighbours.get(edge.from)?.push(position.get(edge.to));
  const crowded = narrow && network.points.length > CROWD, unusual = new Set(edges.filter((edge) => edge.state !== 'good').flatMap((edge) => [edge.from, edge.to]));
  const svg = s('svg', {width, height, viewBox: `0 0 ${width} ${height}`, class: 'map', role: 'group', 'aria-label': 'Map of the network. Each edge is a link to its segment.'},
    edges.map((edge) => edgeElement(context, edge, edge.cell, at, position, {most, labels, thick: edges.length > MANY ? 1.6 : 4.8})),
    network.points.filter((p) => position.has(p.point)).map((p) => pointElement(context, p, position.get(p.point), neighbours.get(p.point) || [], width, !crowded || unusual.has(p.point))));
  return h('section', {class: 'panel map-panel', 'aria-label': 'Map'}, svg);
}

function slider(context, at, length) {
  const {info, go} = context;
  const first = info.first_ns / 1e6, last = info.last_ns / 1e6;
  const show = (ms) => `${time(ms)} ${zone(ms)}`;
  const text = h('output', {}, show(at));
  const place = Math.round(((at - first) / (last - first || 1)) * STEPS);
  const when = (input) => Math.round(first + (input.value / STEPS) * (last - first));
  const move = debounce(120, (ms) => go({at: iso(ms)}, {replace: true}));
  const input = h('input', {type: 'range', min: 0, max: STEPS, step: 1, value: Math.min(STEPS, Math.max(0, place)), 'aria-valuetext': show(at), data: {key: 'time of the map'},
    oninput: () => { text.textContent = show(when(input)); input.setAttribute('aria-valuetext', text.textContent); move(when(input)); }});
  const step = (sign) => go({at: iso(Math.min(last, Math.max(first, at + sign * length)))});
  return h('form', {class: 'controls slider', onsubmit: (event) => event.preventDefault()},
    h('label', {class: 'field wide'}, h('span', {}, 'Time of the map'), input), text,
    h('div', {class: 'moves'}, h('button', {type: 'button', onclick: () => step(-1), data: {key: 'map earlier'}}, '◀ earlier'), h('button', {type: 'button', onclick: () => step(1), data: {key: 'map later'}}, 'later ▶'),
      context.state.query.has('at') && h('button', {type: 'button', onclick: () => go({at: null}), data: {key: 'map now'}}, 'newest')),
    choice('The last', (WINDOWS.find(([, one]) => one === length) || WINDOWS[2])[0], WINDOWS.map(([word, one]) => [word, span(one)]), (word) => go({window: word})));
}

function summary(network, edges) {
  const states = Object.keys(STATES).map((state) => [state, edges.filter((edge) => edge.state === state).length]).filter(([, n]) => n);
  return h('p', {class: 'verdict', data: {edges: edges.length}}, `${count(network.points.length)} points, ${count(edges.length)} edges (each direction is one): `,
    states.map(([state, n], i) => [i ? ', ' : '', `${count(n)} `, badge(state)]), '.');
}

export async function view(context) {
  const {get} = context;
  if (context.state.query.has('at')) await context.ready; // it may count from now
  const at = instant(context), length = windowOf(context);
  const [network, verdicts] = await Promise.all([get('network', {at_ns: `${Math.round(at)}000000`, window_ns: `${length}000000`}),
    get('verdicts', {since_ns: `${Math.round(at - Math.max(length, 3600e3))}000000`, until_ns: `${Math.round(at)}000000`}).catch((error) => ({error: error.message, incidents: []})), context.ready]);
  const edges = directed(network);
  const window = {from: network.since_ns / 1e6, to: network.until_ns / 1e6};
  const bad = network.cells.filter((cell) => cell.state !== 'good').sort(worse);
  const good = network.cells.filter((cell) => cell.state === 'good').sort(worse);
  return [h('h1', {}, 'Network'), slider(context, at, length), summary(network, edges), map(context, network, edges, context.lanes, window), legend(),
    incidentList(context, verdicts, `What is wrong, and why (${span(Math.max(length, 3600e3))} before ${time(at)})`),
    network.disagreements?.length ? h('section', {class: 'panel'}, h('h2', {}, 'The map and the packets disagree'), h('ul', {}, network.disagreements.map((one) => h('li', {}, visible(typeof one === 'string' ? one : one.text || JSON.stringify(one)))))) : null,
    h('h2', {}, 'Lanes, worst first'), h('section', {class: 'panel'}, table(`Lanes in the ${span(length)} before ${time(at)}`, cellColumns(context), [...bad, ...good].slice(0, 400), {data: {cells: 1}}))];
}
