// SPDX-License-Identifier: Apache-2.0
// A path hop by hop: where the delay comes from, where packets are lost, and what the station says.
import {h, s, name, table, choice, visible} from './dom.js';
import {delay, percent, count, loss, period, UNKNOWN} from './format.js';
import {timesOf} from './address.js';
import {cellText, cellLink, cellColumns} from './state.js';
import {incidentElement, incidentList} from './incidents.js';

const BAR = 16, WIDE = 46, NARROW = 66; // pixels: a bar; a row of a wide and of a narrow picture, which has one more line

/** A row of the picture: mean as a bar, p50 to p99 as a line, the loss as a number beside it. */
function hopRow(context, hop, i, x, left, width, row) {
  const y = i * row + 26, below = row > WIDE;
  const known = typeof hop.mean === 'number';
  const label = `${visible(hop.from)} → ${visible(hop.to)}`;
  const value = known ? delay(hop.mean) : UNKNOWN;
  const fate = `${hop.share === null || hop.share === undefined ? '' : `${percent(hop.share)} of the mean · `}lost ${percent(hop.loss_ratio)} of ${count(hop.sent)}`;
  return s('a', {href: cellLink(context, hop), class: `hop state-${hop.state}`, data: {key: `hop ${i}`, from: hop.from, to: hop.to, mean: hop.mean, share: hop.share}},
    s('title', {}, cellText(hop)), s('rect', {x: 0, y: y - 22, width, height: row - 4, class: 'hit-box'}),
    s('text', {x: 4, y: y - 6, class: 'hop-name'}, label),
    known ? s('rect', {x: left, y, width: Math.max(1, x(hop.mean) - left), height: BAR, class: 'bar'}) : s('rect', {x: left, y, width: 60, height: BAR, class: 'bar-unknown'}),
    known && typeof hop.p99 === 'number' && s('path', {d: `M${x(Math.max(0, hop.p50 ?? hop.mean))} ${y + BAR / 2}H${x(hop.p99)}M${x(hop.p99)} ${y + 3}V${y + BAR - 3}`, class: 'whisker'}),
    s('text', {x: 4, y: y + 12, class: 'hop-value'}, value),
    s('text', {x: below ? 4 : width - 6, y: below ? y + 31 : y - 6, class: below ? 'hop-loss' : 'hop-loss end'}, fate));
}

function picture(context, hops) {
  const width = Math.max(300, context.width - 30), left = 84, row = width < 560 ? NARROW : WIDE;
  const most = Math.max(1, ...hops.map((hop) => Math.max(hop.mean || 0, hop.p99 || 0)));
  const x = (ns) => Math.round((left + (Math.max(0, ns) / most) * (width - left - 8)) * 10) / 10;
  return s('svg', {width, height: hops.length * row + 8, viewBox: `0 0 ${width} ${hops.length * row + 8}`, class: 'hops', role: 'group', 'aria-label': 'Hops of the path: bars are means, lines reach from p50 to p99'},
    hops.map((hop, i) => hopRow(context, hop, i, x, left, width, row)));
}

function composedText(context, answer) {
  const {composed, end_to_end: direct} = answer;
  const lines = [];
  if (composed) {
    lines.push(h('p', {data: {composed: composed.mean}}, h('b', {}, 'Sum of the hops: '), `mean ${delay(composed.mean)}, lost ${percent(composed.loss_ratio)}, p99 `,
      composed.p99_low === null || composed.p99_low === undefined ? UNKNOWN : `between ${delay(composed.p99_low)} and ${delay(composed.p99_high)}`, composed.why ? `: ${visible(composed.why)}` : ''));
  }
  lines.push(h('p', {}, h('b', {}, 'Measured from end to end: '), direct ? h('a', {href: cellLink(context, direct)}, `mean ${delay(direct.mean)}, p99 ${delay(direct.p99)} of ${count(direct.samples)} packets, lost ${loss(direct.lost, direct.sent, direct.loss_ratio)}`) : 'no lane'));
  return lines;
}

export async function view(context) {
  await context.ready;
  const {get, range, state, go, lanes} = context;
  const points = [...new Set(lanes.flatMap((lane) => [lane.from, lane.to]))].filter((one) => !one.includes('+')).sort();
  const classes = [...new Set(lanes.map((lane) => lane.class))];
  const from = state.query.get('from') ?? lanes[0]?.from, to = state.query.get('to') ?? lanes[0]?.to, one = state.query.get('class');
  const form = h('form', {class: 'controls', onsubmit: (event) => event.preventDefault()},
    choice('From', from, points.map((p) => [p, p]), (value) => go({from: value, to})), choice('To', to, points.map((p) => [p, p]), (value) => go({from, to: value})),
    choice('Class', one || '', [['', 'all (the worst)'], ...classes.map((c) => [c, c])], (value) => go({class: value || null})),
    h('a', {class: 'button', href: context.link('path', {from: to, to: from})}, 'Other direction'));
  const heading = [h('h1', {}, 'Path ', name(from ?? ''), ' → ', name(to ?? '')), form];
  if (!from || !to) return [...heading, h('p', {}, 'There are no results in the store.')];
  if (from === to) return [...heading, h('p', {}, 'A path needs two points.')];
  const [answer, verdicts] = await Promise.all([get('path', {from, to, class: one, ...timesOf(range)}).catch((error) => { if (error.name === 'AbortError') throw error; return {error: error.message}; }),
    get('verdicts', timesOf(range)).catch((error) => ({error: error.message, incidents: []}))]);
  if (answer.error) return [...heading, h('p', {class: 'error'}, visible(answer.error))];
  if (!answer.hops.length) return [...heading, h('p', {data: {noWay: 1}}, visible(`There is no way: ${answer.why}.`))];
  const on = new Set(answer.points || []);
  const related = {...verdicts, incidents: verdicts.incidents.filter((incident) => on.has(incident.from) && on.has(incident.to) && incident.text !== answer.verdict?.text)};
  return [...heading, h('p', {}, 'Way: ', (answer.points || []).map((point, i) => [i ? ' → ' : '', name(point)])),
    h('section', {class: 'panel'}, picture(context, answer.hops), composedText(context, answer)),
    answer.verdict ? h('section', {class: 'panel'}, h('h2', {}, 'Verdict'), answer.verdict.text ? incidentElement(context, answer.verdict) : h('p', {}, visible(answer.verdict.why || JSON.stringify(answer.verdict)))) : null,
    incidentList(context, related, answer.verdict ? 'Other incidents on this path' : 'Incidents on this path'),
    h('h2', {}, 'Hops'), h('section', {class: 'panel'}, table(`Hops, ${period(range.since, range.until)}`, cellColumns(context), answer.hops, {data: {cells: 1}}))];
}
