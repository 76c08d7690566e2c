// SPDX-License-Identifier: Apache-2.0
// States of lanes and edges: a word, a sign and a class of the style sheet for each. No state is shown by its colour alone.
import {h, name, visible} from './dom.js';
import {delay, percent, count, loss, UNKNOWN} from './format.js';

export const STATES = {
  loss: {sign: '✕', text: 'loses packets'},
  delay: {sign: '▲', text: 'slower than usual'},
  partial: {sign: '◐', text: 'partly measured'},
  unknown: {sign: '?', text: 'unknown'},
  good: {sign: '●', text: 'in order'},
};
const ORDER = Object.keys(STATES);

export const rank = (state) => { const at = ORDER.indexOf(state); return at < 0 ? ORDER.indexOf('unknown') : at; };

/** Worst first: the state, then the loss, then the p99. */
export const worse = (a, b) => rank(a.state) - rank(b.state) || (b.loss_ratio ?? -1) - (a.loss_ratio ?? -1) || (b.p99 ?? -1) - (a.p99 ?? -1);

export const badge = (state) => h('span', {class: `badge state-${state}`}, h('i', {'aria-hidden': 'true'}, (STATES[state] || STATES.unknown).sign), ` ${(STATES[state] || STATES.unknown).text}`);

export const legend = () => h('ul', {class: 'legend', 'aria-label': 'Legend'}, ORDER.map((state) => h('li', {}, badge(state))));

/** What a cell says in a sentence. */
export const cellText = (cell) => `${visible(cell.class ?? '')} ${visible(cell.from)} → ${visible(cell.to)}: ${(STATES[cell.state] || STATES.unknown).text}; lost ${loss(cell.lost, cell.sent, cell.loss_ratio)}; ` +
  `p50 ${delay(cell.p50)}, p99 ${delay(cell.p99)} of ${count(cell.samples)} packets${cell.why ? `; ${visible(cell.why)}` : ''}`;

/** The address of the segment of a cell. */
export const cellLink = (context, cell, more) => context.link('segment', {segment: cell.segment, class: cell.class, from: cell.from, to: cell.to, ...more});

/** Columns of a table of cells. */
export const cellColumns = (context) => [
  {title: 'lane', of: (cell) => h('a', {href: cellLink(context, cell)}, name(cell.segment), ' ', cell.class && name(cell.class), ' ', name(cell.from), ' → ', name(cell.to))},
  {title: 'state', of: (cell) => [badge(cell.state), cell.state !== 'good' && cell.why && h('small', {}, visible(cell.why))]},
  {title: 'lost', number: true, of: (cell) => loss(cell.lost, cell.sent, cell.loss_ratio)},
  {title: 'p50', number: true, of: (cell) => delay(cell.p50)},
  {title: 'p99', number: true, of: (cell) => [delay(cell.p99), typeof cell.p99_low === 'number' && h('small', {}, `${delay(cell.p99_low)} to ${delay(cell.p99_high)}`)]},
  {title: 'usual p99', number: true, of: (cell) => delay(cell.usual_p99)},
  {title: 'delays of', number: true, of: (cell) => (cell.samples === null || cell.samples === undefined ? UNKNOWN : `${count(cell.samples)} packets`)},
  {title: 'clock error', number: true, of: (cell) => (cell.clock_error_ns === null || cell.clock_error_ns === undefined ? UNKNOWN : `± ${delay(cell.clock_error_ns)}`)},
  {title: 'measured', number: true, of: (cell) => percent(cell.availability)},
];
