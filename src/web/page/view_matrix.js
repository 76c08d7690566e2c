// SPDX-License-Identifier: Apache-2.0
// Points by points: the loss and the p99 of each pair, and all pairs with the worst first.
import {h, name, table, choice} from './dom.js';
import {delay, percent, period} from './format.js';
import {timesOf} from './address.js';
import {STATES, legend, worse, rank, cellText, cellLink, cellColumns} from './state.js';

const SMALL = 14; // points: a larger grid has signs only
const MOST = 60; // points: a larger grid is no use, the list has all

function cellElement(context, cell, value, small) {
  if (!cell) return h('td', {class: 'none'});
  const text = value === 'p99' ? delay(cell.p99) : percent(cell.loss_ratio);
  return h('td', {class: `cell state-${cell.state}`}, h('a', {href: cellLink(context, cell), title: cellText(cell), 'aria-label': cellText(cell), data: {key: `cell ${cell.from} ${cell.to}`, from: cell.from, to: cell.to, class: cell.class, loss: cell.loss_ratio, p99: cell.p99, state: cell.state}},
    h('i', {'aria-hidden': 'true'}, (STATES[cell.state] || STATES.unknown).sign), small || cell.state === 'unknown' ? '' : ` ${text}`));
}

/** Points with the worst lanes first, or by name. */
function ordered(points, cells, by) {
  if (by === 'name') return [...points].sort();
  const badness = (point) => cells.filter((cell) => cell.from === point || cell.to === point).reduce((sum, cell) => sum + [1e6, 1e4, 1e2, 1e2, 0][rank(cell.state)] + Math.min(99, (cell.loss_ratio || 0) * 99), 0);
  const all = new Map(points.map((point) => [point, badness(point)]));
  return [...points].sort((a, b) => all.get(b) - all.get(a) || (a < b ? -1 : 1));
}

const valueText = (value) => (value === 'p99' ? 'p99 of the delay' : 'Loss');

function gridOf(context, points, cells, value) {
  const worst = new Map(), small = points.length > SMALL;
  for (const cell of [...cells].sort((a, b) => -worse(a, b))) worst.set(JSON.stringify([cell.from, cell.to]), cell);
  return h('div', {class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Matrix of points'}, h('table', {class: small ? 'matrix small' : 'matrix'},
    h('caption', {class: 'sr-only'}, `${valueText(value)} from the points of the rows to those of the columns`),
    h('thead', {}, h('tr', {}, h('td', {}), points.map((to) => h('th', {scope: 'col'}, h('span', {}, name(to)))))),
    h('tbody', {}, points.map((from) => h('tr', {}, h('th', {scope: 'row'}, name(from)), points.map((to) => cellElement(context, worst.get(JSON.stringify([from, to])), value, small)))))));
}

export async function view(context) {
  const {get, range, state, go} = context;
  const wanted = state.query.get('class'), value = state.query.get('value') || 'loss', order = state.query.get('order') || 'worst';
  const [answer] = await Promise.all([get('matrix', {...timesOf(range), class: wanted}), context.ready]);
  const classes = [...new Set(context.lanes.map((lane) => lane.class))];
  const cells = [...answer.cells].sort(worse);
  const used = new Set(cells.flatMap((cell) => [cell.from, cell.to]));
  const points = ordered([...used], cells, order).slice(0, MOST);
  return [h('h1', {}, 'Matrix'), h('form', {class: 'controls', onsubmit: (event) => event.preventDefault()},
    choice('Class', wanted || '', [['', 'all (the worst)'], ...classes.map((one) => [one, one])], (one) => go({class: one || null})),
    choice('Cells show', value, [['loss', 'loss'], ['p99', 'p99 of the delay']], (one) => go({value: one === 'loss' ? null : one})),
    choice('Order', order, [['worst', 'worst first'], ['name', 'by name']], (one) => go({order: one === 'worst' ? null : one}))),
  legend(), h('section', {class: 'panel'}, h('p', {class: 'note'}, `${valueText(value)} from the points of the rows to those of the columns. ${points.length > SMALL ? 'The number is' : 'How many packets it is of and the clocks\' error are'} in each cell\'s title and in the list below.`), gridOf(context, points, cells, value), used.size > MOST ? h('p', {class: 'note'}, `${MOST} of ${used.size} points; the list has all lanes.`) : null),
  h('h2', {}, 'Lanes, worst first'), h('section', {class: 'panel'}, table(`Lanes, ${period(range.since, range.until)}`, cellColumns(context), cells.slice(0, 500), {data: {cells: 1}}))];
}
