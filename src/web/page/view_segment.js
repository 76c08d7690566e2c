// SPDX-License-Identifier: Apache-2.0
// A segment over time: each class and direction with its bands, its sums, its distribution and its intervals.
import {h, name, table, choice, visible} from './dom.js';
import {delay, count, loss, percent, time, period, span, quoted, UNKNOWN} from './format.js';
import {timesOf, iso} from './address.js';
import {draw, scaleOf, plotWidth, binText, causesIn} from './chart.js';
import {drawDistribution, distributionRows} from './histogram.js';
import {connect} from './interact.js';
import {svgText, png, download, copy, csv} from './save.js';

const WEEK = 7 * 86400e3;
const RAW = 100;      // intervals in the list
const EVENTS = 200;   // marks of events in a chart, the newest ones
const FETCHED = new Map(); // what the points of a fleet were asked for last, and their answer
const FETCH_MAX = 2 * 3600e3; // ms: seconds of a longer time are not asked for
const CURSOR = {at: null}; // stays when the view is drawn again
const SCALES = [['auto', 'automatic'], ['zero', 'from 0'], ['p99', 'up to the p99'], ['log', 'logarithmic']];
const QUANTILES = ['0.5', '0.9', '0.95', '0.99', '0.999'];

const laneText = (lane) => `${visible(lane.class)} ${visible(lane.from)} → ${visible(lane.to)}`;
const laneName = (lane) => [name(lane.class), ' ', name(lane.from), ' → ', name(lane.to)];
const select = (lane) => ({segment: lane.segment, class: lane.class, from: lane.from, to: lane.to});
const same = (a, b) => a.segment === b.segment && a.class === b.class && a.from === b.from && a.to === b.to;

/** What the address selects: segment, pair of points, classes, and the lanes, one direction after the other. */
function selection(lanes, query) {
  const segments = [...new Set(lanes.map((lane) => lane.segment))];
  const wanted = query.get('segment');
  const segment = wanted === null ? segments[0] : wanted;
  const within = lanes.filter((lane) => lane.segment === segment);
  const classes = [...new Set(within.map((lane) => lane.class))];
  const given = query.getAll('class').filter((one) => classes.includes(one));
  const shown = given.length ? given : classes.slice(0, 1);
  const pairs = [];
  for (const {from, to} of within) if (!pairs.some((pair) => pair.includes(from) && pair.includes(to))) pairs.push([from, to]);
  const [from, to] = query.has('from') && query.has('to') ? [query.get('from'), query.get('to')] : pairs[0] || [];
  const find = (one, a, b) => within.find((lane) => lane.class === one && lane.from === a && lane.to === b);
  const chosen = [[from, to], [to, from]].flatMap(([a, b]) => shown.map((one) => find(one, a, b))).filter(Boolean);
  return {segments, segment, classes, shown, pairs, from, to, lanes: chosen};
}

function controls(context, chosen) {
  const {go, state} = context;
  const toggle = (one) => go({class: chosen.classes.filter((other) => (other === one) !== chosen.shown.includes(other))});
  return h('form', {class: 'controls', onsubmit: (event) => event.preventDefault()},
    choice('Segment', chosen.segment, chosen.segments.map((one) => [one, one]), (segment) => go({segment, class: null, from: null, to: null})),
    chosen.pairs.length > 1 && choice('Points', JSON.stringify([chosen.from, chosen.to]), chosen.pairs.map((pair) => [JSON.stringify(pair), pair.join(' and ')]),
      (pair) => { const [from, to] = JSON.parse(pair); go({from, to}); }),
    h('fieldset', {class: 'field'}, h('legend', {}, 'Classes'), chosen.classes.map((one) => h('label', {class: 'check'},
      h('input', {type: 'checkbox', checked: chosen.shown.includes(one), data: {key: `class ${one}`}, onchange: () => toggle(one)}), name(one)))),
    choice('Delay axis', state.query.get('scale') || 'auto', SCALES, (scale) => go({scale: scale === 'auto' ? null : scale})),
    h('label', {class: 'check'}, h('input', {type: 'checkbox', checked: state.query.has('compare'), data: {key: 'compare'},
      onchange: (event) => go({compare: event.target.checked ? 'week' : null})}), 'same hours of last week'));
}

/** The series of last week at the time of this week. */
const moved = (series) => series && {...series, start_ns: series.start_ns.map((at) => at + WEEK * 1e6)};

function idle(series, range) {
  const sum = (key) => series[key].reduce((a, b) => a + (b || 0), 0);
  return [['time', period(range.since, range.until)], ['bins of', span(series.bin_ns / 1e6)], ['lost', loss(sum('lost'), sum('sent') - (series.pending ? sum('pending') : 0))], ['delays of', `${count(sum('samples'))} packets`],
    ['intervals', ['measured', 'partial', 'unknown', 'missing'].filter(sum).map((key) => `${count(sum(key))} ${key}`).join(', ') || 'none']];
}

/** The same while finer bins are being loaded: these may reach beyond the range, so their sums are not those of it. */
const early = (series, range) => [['time', period(range.since, range.until)], ['bins of', `${span(series.bin_ns / 1e6)}; others are being loaded`]];

/** The bins of a series that touch a range. */
function within(series, {since, until}) {
  const first = series.start_ns.findIndex((start) => (start + series.bin_ns) / 1e6 > since), behind = series.start_ns.findIndex((start) => start / 1e6 >= until);
  const from = first < 0 ? series.bins : first, to = behind < 0 ? series.bins : behind;
  return Object.fromEntries(Object.entries(series).map(([key, value]) => [key, Array.isArray(value) && key !== 'causes' ? value.slice(from, to) : value]));
}

function summaryText(lane, series) {
  const sum = (key) => series[key].reduce((a, b) => a + (b || 0), 0);
  const worst = Math.max(...series.p99.map((v) => v ?? -Infinity));
  return `${laneText(lane)}: ${series.start_ns.length} bins of ${span(series.bin_ns / 1e6)}; lost ${loss(sum('lost'), sum('sent'))}; ` +
    `highest p99 of a bin ${worst > -Infinity ? delay(worst) : UNKNOWN}; intervals measured ${count(sum('measured'))}, partial ${count(sum('partial'))}, unknown ${count(sum('unknown'))}, missing ${count(sum('missing'))}.`;
}

/** The table of what is drawn, made when it is opened. */
function binTable(lane, series) {
  const at = (key) => (i) => series[key][i];
  const columns = [{title: 'start', of: (i) => time(series.start_ns[i] / 1e6)},
    ...['min', 'p50', 'p90', 'p99', 'max', 'mean'].map((key) => ({title: key, number: true, of: (i) => (series.samples[i] ? delay(at(key)(i)) : UNKNOWN)})),
    {title: 'delays', number: true, of: (i) => count(series.samples[i])},
    {title: 'clock error', number: true, of: (i) => (series.clock_error_ns[i] === null ? UNKNOWN : `± ${delay(series.clock_error_ns[i])}`)},
    {title: 'sent', number: true, of: (i) => count(series.sent[i])}, {title: 'lost', number: true, of: (i) => count(series.lost[i])},
    {title: 'loss', number: true, of: (i) => percent(series.loss_ratio[i])},
    ...['measured', 'partial', 'unknown', 'missing'].map((key) => ({title: key, number: true, of: (i) => count(series[key][i] || 0)}))];
  const details = h('details', {class: 'bins', ontoggle: () => {
    if (details.open && !details.querySelector('table')) details.append(table(`Bins of ${laneText(lane)}`, columns, [...series.start_ns.keys()], {data: {bins: laneText(lane)}}));
  }}, h('summary', {}, `table of the ${series.start_ns.length} bins that are drawn`));
  return details;
}

const LEGEND = [['median', 'p50'], ['low', 'min to p50'], ['p90', 'to p90'], ['p99', 'to p99'], ['max', 'to max'], ['loss', 'loss'], ['clock', 'clock error around p50'],
  ['partial', 'partial'], ['unknown', 'unknown'], ['missing', 'not in the store']];

const legend = (compare, truth) => h('ul', {class: 'legend', 'aria-label': 'Legend'},
  [...LEGEND, ...(compare ? [['before', 'last week, p50 to p99']] : []), ...(truth ? [['truth', 'true mean of the wire']] : [])].map(([key, text]) => h('li', {}, h('i', {class: `key key-${key}`}), text)));

function panelOf(lane, series, svg, range, isEarly) {
  const label = isEarly ? `${laneText(lane)}: being loaded.` : summaryText(lane, series);
  const box = h('div', {class: 'chart-box', tabindex: 0, role: 'slider', 'aria-label': `Delay and loss over time, ${laneText(lane)}. Arrows move, plus and minus zoom, Escape goes back.`,
    'aria-valuemin': 0, 'aria-valuemax': Math.max(0, series.start_ns.length - 1), 'aria-valuenow': 0, 'aria-valuetext': label, data: {key: `chart ${laneText(lane)}`, lane: laneText(lane)}}, svg);
  const line = h('p', {class: 'readout'});
  const element = h('section', {class: 'panel lane', 'aria-label': laneText(lane), data: {lane: laneText(lane)}},
    h('h2', {class: 'lane-name'}, laneName(lane)), line, box, h('p', {class: 'sr-only'}, label), causeList(series, range), binTable(lane, series));
  return {series, svg, box, readout: line, idle: isEarly ? early(series, range) : idle(series, range), element, title: laneText(lane), isEarly};
}

/** Why there are no or not all numbers, as text. */
function causeList(series, range) {
  const causes = causesIn(series, range.since, range.until);
  if (!causes.length) return null;
  const more = causes.length > 3 || series.causes_omitted > 0;
  const item = (cause) => h('li', {class: `cause cause-${cause.status}`}, h('i', {class: `key key-${cause.status}`}),
    `${count(cause.intervals)} ${cause.status}: ${visible(cause.cause || cause.cause_code)}, ${period(cause.start_ns / 1e6, cause.end_ns / 1e6)}`);
  return h('div', {class: 'causes'}, h('ul', {}, causes.slice(0, 3).map(item)),
    more && h('details', {}, h('summary', {}, `${causes.length - 3 + (series.causes_omitted || 0)} more times that are not or not fully measured`),
      h('ul', {}, causes.slice(3).map(item)), series.causes_omitted > 0 && h('p', {}, `${count(series.causes_omitted)} more are not listed.`)));
}

const quantile = (sum, q) => (sum.delay_ns ? sum.delay_ns.quantiles?.[q] : null);
const bounds = (sum, q) => sum.ci95?.quantiles?.[q] || sum.delay_ns?.ci95?.quantiles?.[q];

function quantileCell(sum, q) {
  const pair = bounds(sum, q);
  return h('span', {title: pair ? `between ${delay(pair[0])} and ${delay(pair[1])}` : null}, delay(quantile(sum, q)),
    pair && pair[0] !== pair[1] && h('small', {}, ` ${delay(pair[0])} to ${delay(pair[1])}`));
}

function sumTable(sums, caption) {
  return table(caption, [
    {title: 'lane', of: (sum) => [sum.note, ...laneName(sum)]},
    {title: 'lost', number: true, of: (sum) => loss(sum.lost, sum.sent - (sum.pending || 0), sum.loss_ratio)},
    {title: 'delays of', number: true, of: (sum) => `${count(sum.samples)} packets`},
    {title: 'mean', number: true, of: (sum) => delay(sum.delay_ns?.mean)},
    ...QUANTILES.filter((q) => q !== '0.95').map((q) => ({title: `p${Number((q * 100).toFixed(1))}`, number: true, of: (sum) => quantileCell(sum, q)})),
    {title: 'clock error', number: true, of: (sum) => (sum.clock_error_ns === null || sum.clock_error_ns === undefined ? UNKNOWN : `± ${delay(sum.clock_error_ns)}`)},
    {title: 'measured', number: true, hint: 'share of the intervals that were fully measured', of: (sum) => `${percent(sum.availability)} of ${count(sum.intervals + (sum.missing || 0))}`},
  ], sums, {data: {sums: 1}});
}

function distributionOf(sum, width) {
  const marks = QUANTILES.map((q) => [`p${Number((q * 100).toFixed(1))}`, quantile(sum, q)]);
  if (!sum.distribution || !sum.distribution.packets.length) return h('section', {class: 'panel'}, h('h3', {}, laneName(sum)), h('p', {}, 'No delays are known in this time.'));
  const svg = drawDistribution(sum.distribution, width, marks.filter(([text]) => text !== 'p95'), `Distribution of the delays of ${laneText(sum)}`);
  const columns = [{title: 'delay from', number: true, of: (row) => delay(row.low)}, {title: 'to', number: true, of: (row) => delay(row.high)},
    {title: 'packets', number: true, of: (row) => count(row.packets)}, {title: 'share', number: true, of: (row) => percent(row.share)},
    {title: 'slower', number: true, of: (row) => `${count(row.slower)} (${percent(row.slower / svg.dataset.packets)})`}];
  return h('section', {class: 'panel'}, h('h3', {}, laneName(sum)), h('p', {class: 'note'}, `${count(Number(svg.dataset.packets))} packets. Bars: packets by delay. Line: share of packets that are slower (right axis).`),
    svg, h('details', {}, h('summary', {}, 'table'), table(`Distribution of ${laneText(sum)}`, columns, distributionRows(sum.distribution, 40), {data: {distribution: laneText(sum)}})));
}

function rawTable(lane, answer) {
  const mark = {measured: '', partial: '!', unknown: '?'};
  const rows = answer.results.map((result) => ({...result, rowClass: `row-${result.status}`})).sort((a, b) => b.start_ns - a.start_ns);
  return h('section', {class: 'panel'}, table(`${answer.truncated ? `The newest ${rows.length} intervals` : `All ${rows.length} intervals`} of ${laneText(lane)}`, [
    {title: 'start', of: (r) => `${time(r.start_ns / 1e6)}${r.final === false ? ' ~' : ''} ${mark[r.status] ?? ''}`},
    {title: 'sent', number: true, of: (r) => count(r.sent)}, {title: 'lost', number: true, of: (r) => count(r.lost)}, {title: 'loss', number: true, of: (r) => percent(r.loss_ratio)},
    {title: 'late', number: true, of: (r) => count(r.late)}, {title: 'pending', number: true, of: (r) => count(r.pending)},
    {title: 'delays', number: true, of: (r) => count(r.samples)}, {title: 'mean', number: true, of: (r) => delay(r.delay_ns?.mean)},
    ...['0.5', '0.9', '0.99'].map((q) => ({title: `p${q * 100}`, number: true, of: (r) => delay(r.delay_ns?.quantiles?.[q])})),
    {title: 'max', number: true, of: (r) => delay(r.delay_ns?.max)},
    {title: 'clock error', number: true, of: (r) => (typeof r.clock?.error_ns === 'number' ? `± ${delay(r.clock.error_ns)}` : UNKNOWN)},
    {title: 'status', wide: true, of: (r) => [h('i', {class: `key key-${r.status}`}), `${r.status}${r.cause ? `: ${visible(r.cause)}` : ''}`]},
  ], rows, {data: {raw: laneText(lane)}}));
}

/** The command that gives the same sums. */
function commandOf(context, chosen) {
  const {info, range} = context;
  const words = ['oneway', 'results', info.store || 'STORE', '--segment', chosen.segment];
  if (chosen.shown.length === 1) words.push('--class', chosen.shown[0]);
  words.push('--since', iso(range.since), '--until', iso(range.until));
  return [...words, '--summary', '--period', 'any'].map(quoted).join(' ');
}

const SERIES_COLUMNS = ['min', 'p50', 'p90', 'p99', 'max', 'mean', 'samples', 'sent', 'received', 'lost', 'late', 'duplicated', 'pending', 'loss_ratio', 'clock_error_ns', 'intervals', 'measured', 'partial', 'unknown', 'missing'];

function csvOf(panels, lanes) {
  return csv(['segment', 'class', 'from', 'to', 'start_ns', 'bin_ns', ...SERIES_COLUMNS], panels.flatMap(({series}, p) => series.start_ns.map((start, i) =>
    [lanes[p].segment, lanes[p].class, lanes[p].from, lanes[p].to, `${Math.round(start / 1e6)}000000`, series.bin_ns, ...SERIES_COLUMNS.map((key) => series[key]?.[i])])));
}

function exports(context, chosen) {
  const file = `oneway-${chosen.segment}-${iso(context.range.since)}`;
  const said = h('span', {role: 'status', class: 'note'});
  const say = (text) => { said.textContent = text; };
  const button = (text, action) => h('button', {type: 'button', onclick: action, data: {key: text}}, text);
  const svg = () => svgText(shown.panels);
  const command = h('code', {class: 'command', tabindex: 0, 'aria-label': 'command with the same numbers'}, commandOf(context, chosen));
  const element = h('div', {class: 'exports'},
    button('Copy PNG', async () => {
      const blob = await png(svg());
      if (await copy('image/png', blob)) say('The picture is in the clipboard.');
      else { download(`${file}.png`, blob); say('The picture was saved.'); }
    }),
    button('Save PNG', async () => download(`${file}.png`, await png(svg()))),
    button('Save SVG', () => download(`${file}.svg`, new Blob([svg()], {type: 'image/svg+xml'}))),
    button('Save CSV', () => download(`${file}.csv`, new Blob([csvOf(shown.panels, chosen.lanes)], {type: 'text/csv'}))),
    button('Copy command', async () => say(await copy('text/plain', command.textContent) ? 'The command is in the clipboard.' : 'Select the command and copy it.')),
    button('Copy link', async () => say(await copy('text/plain', link(context)) ? 'The address is in the clipboard.' : 'Copy the address of the page.')),
    said, h('p', {class: 'note'}, 'The same numbers: ', command));
  return element;
}

/** The address with the times as they are now, so that others see the same. */
const link = ({range, link: to}) => new URL(to('segment', {since: iso(range.since), until: iso(range.until)}), location.href).href;

async function sumsOf(context, chosen, answer, width, truth) {
  const {get, range} = context;
  const picked = chosen.lanes.map((lane) => answer.sums.find((sum) => same(sum, lane))).filter(Boolean);
  const rows = [...picked];
  if (context.state.query.has('compare')) {
    const before = await get('summary', {segment: chosen.segment, ...timesOf({since: range.since - WEEK, until: range.until - WEEK})});
    rows.push(...chosen.lanes.map((lane) => before.sums.find((sum) => same(sum, lane))).filter(Boolean).map((sum) => ({...sum, note: 'last week: '})));
  }
  return h('div', {},
    h('h2', {}, 'The range in numbers'), rows.length ? h('section', {class: 'panel'}, sumTable(rows, `Sums of ${period(range.since, range.until)}${rows[0].period && rows[0].period !== 'interval' ? `, from ${rows[0].period}s and shorter periods` : ''}`),
      truth.size ? await truthTable(context, chosen, truth) : null) : h('p', {}, 'No results in this time.'),
    h('h2', {}, 'Distribution of the delays'), h('div', {class: `lanes distributions cols-${width.columns}`}, picked.map((sum) => distributionOf(sum, width.chart))));
}

/** What the wire of a lab did: a Map of "from to" to its intervals, in their order. Empty if this is no lab. */
async function truthOf({get, info}, chosen) {
  const answer = info.features?.includes('truth') ? await get('truth').catch(() => null) : null;
  return new Map((answer?.segments || []).filter((way) => way.segment === chosen.segment).map((way) => [JSON.stringify([way.from, way.to]), way.intervals]));
}

/** The wire does not know classes. */
const truthFor = (truth, chosen, lane) => (chosen.classes.length === 1 ? truth.get(JSON.stringify([lane.from, lane.to])) : undefined);

/** Sums of the intervals that both know: what was measured, and the truth. */
function compared(results, intervals) {
  const known = new Map(results.filter((result) => result.status === 'measured' && result.final !== false).map((result) => [result.start_ns, result]));
  const sum = {intervals: 0, sent: 0, lost: 0, samples: 0, delays: 0, trueSent: 0, trueLost: 0, trueSamples: 0, trueDelays: 0};
  for (const one of intervals) {
    const result = known.get(one.start_ns);
    if (!result) continue;
    sum.intervals++;
    sum.sent += result.sent;
    sum.lost += result.lost;
    sum.trueSent += one.sent;
    sum.trueLost += one.lost;
    if (typeof result.delay_ns?.mean === 'number') { sum.samples += result.samples; sum.delays += result.samples * result.delay_ns.mean; }
    if (typeof one.delay_ns.mean === 'number') { sum.trueSamples += one.sent - one.lost; sum.trueDelays += (one.sent - one.lost) * one.delay_ns.mean; }
  }
  return {...sum, mean: sum.samples ? sum.delays / sum.samples : null, trueMean: sum.trueSamples ? sum.trueDelays / sum.trueSamples : null};
}

async function truthTable({get, range}, chosen, truth) {
  const rows = [];
  for (const lane of chosen.lanes) {
    const intervals = truthFor(truth, chosen, lane);
    if (intervals) rows.push({lane, ...compared((await get('results', {...select(lane), ...timesOf(range), period: 'interval', limit: 5000})).results, intervals)});
  }
  return rows.length ? table('Truth beside measurement: final intervals of this time that both the points and the wire of the lab know', [
    {title: 'lane', of: (row) => laneName(row.lane)}, {title: 'intervals', number: true, of: (row) => count(row.intervals)},
    {title: 'lost', number: true, of: (row) => loss(row.lost, row.sent)}, {title: 'truly lost', number: true, of: (row) => loss(row.trueLost, row.trueSent)},
    {title: 'mean', number: true, of: (row) => delay(row.mean)}, {title: 'true mean', number: true, of: (row) => delay(row.trueMean)},
    {title: 'error', number: true, of: (row) => (row.mean === null || row.trueMean === null ? UNKNOWN : `${row.mean > row.trueMean ? '+' : ''}${delay(row.mean - row.trueMean)}`)}], rows, {data: {truth: 1}}) : null;
}

/** Results of intervals that are still at the points of a fleet are asked for, once for a time; then the view is drawn again. */
async function fetchSeconds({get, range, again}, chosen) {
  const key = JSON.stringify([chosen.segment, Math.floor(range.since / 60e3), Math.floor(range.until / 60e3)]);
  if (FETCHED.get('key') !== key) {
    FETCHED.set('key', key);
    const answer = await get('seconds', {segment: chosen.segment, ...timesOf(range)});
    FETCHED.set('answer', answer);
    if (answer.rows > 0) again();
  }
  const missing = FETCHED.get('answer')?.missing || [];
  return missing.length ? h('section', {class: 'panel', data: {seconds: missing.length}}, h('h2', {}, 'Intervals that the points did not send'),
    h('ul', {class: 'plain'}, missing.slice(0, 20).map((one) => h('li', {}, laneName(one), ', ', period(one.since_ns / 1e6, one.until_ns / 1e6), ': ', visible(one.why))))) : h('div', {});
}

function eventList({events, omitted, error}) {
  if (error) return h('p', {class: 'error'}, `The events of this time are not known: ${visible(error)}`);
  if (!events.length) return null;
  return h('details', {class: 'panel', open: events.length <= 5}, h('summary', {}, `${count(events.length + omitted)} events in this time${omitted ? `, of which the newest ${count(events.length)} are marked and listed` : ''}`),
    h('ul', {class: 'plain'}, events.map((event) => h('li', {}, h('b', {}, time(event.time_ns / 1e6)), ' ', event.from && event.class ? [...laneName(event), ': '] : null, visible(event.text || event.kind)))));
}

function widths(context, chosen) {
  const room = context.width;
  const columns = Math.max(1, Math.min(chosen.shown.length, Math.floor(room / 430), 3));
  const narrow = room < 560;
  return {columns, chart: Math.floor((room - 14 * (columns - 1)) / columns) - (narrow ? 12 : 26)};
}

async function load(context, chosen, width) {
  const {get, range, state} = context;
  const series = (lane, shift) => get('series', {...select(lane), ...timesOf({since: range.since - shift, until: range.until - shift}), width: Math.min(4096, plotWidth(width.chart))});
  const week = state.query.has('compare');
  const [now, before, events] = await Promise.all([Promise.all(chosen.lanes.map((lane) => series(lane, 0))),
    Promise.all(chosen.lanes.map((lane) => (week ? series(lane, WEEK) : null))),
    get('events', {segment: chosen.segment, ...timesOf(range), limit: EVENTS}).catch((error) => { if (error.name === 'AbortError') throw error; return {events: [], omitted: 0, error: error.message}; })]);
  return {now, before: before.map(moved), events};
}

let shown = null; // the charts on the screen: {key, range, loaded, truth, element, panels}

/** The charts of all lanes. They are made of bins that are there (isEarly), or of those of this range. */
function charts(context, chosen, width, loaded, truth, isEarly) {
  const {range, state, go} = context;
  const [now, before] = [loaded.now, loaded.before].map((all) => all.map((series) => (series && isEarly ? within(series, range) : series)));
  const scale = scaleOf([...now, ...before.filter(Boolean)], state.query.get('scale') || 'auto');
  const box = {width: width.chart, since: range.since, until: range.until};
  const ofLane = (event, lane) => (!event.class || event.class === lane.class) && (!event.from || event.from === lane.from);
  const panels = chosen.lanes.map((lane, i) => panelOf(lane, now[i],
    draw(now[i], box, scale, {before: before[i], events: loaded.events.events.filter((event) => ofLane(event, lane)), truth: truthFor(truth, chosen, lane), label: laneText(lane)}), range, isEarly));
  connect(panels, range, CURSOR, {zoom: (since, until) => go({since: iso(since), until: iso(until)}), out: context.zoomOut});
  return {range, panels, element: h('div', {class: `lanes cols-${width.columns}`}, panels.map((panel) => panel.element))};
}

/** After a zoom: draws the bins that are on the screen at the new scale, at once; the answers of the server follow. */
function drawEarly(context, chosen, width, key) {
  const {range} = context;
  if (shown?.key !== key || !shown.element.isConnected || range.live || range.since >= shown.range.until || range.until <= shown.range.since) return;
  context.early(() => {
    const {element} = shown;
    shown = {...shown, ...charts(context, chosen, width, shown.loaded, shown.truth, true)};
    element.replaceWith(shown.element);
  });
}

export async function view(context) {
  if (!context.lanes || !context.info) await context.ready;
  const {lanes, state, range, get, late} = context;
  const chosen = selection(lanes, state.query);
  const heading = [h('h1', {}, 'Segment ', name(chosen.segment ?? '')), controls(context, chosen)];
  if (!chosen.lanes.length) return [...heading, h('p', {}, lanes.length ? 'There is no such lane in the store.' : 'There are no results in the store.')];
  const width = widths(context, chosen);
  const key = JSON.stringify([chosen.lanes.map(select), width.chart, state.query.has('compare')]);
  drawEarly(context, chosen, width, key);
  const [loaded, truth] = await Promise.all([load(context, chosen, width), truthOf(context, chosen)]);
  shown = {key, loaded, truth, ...charts(context, chosen, width, loaded, truth, false)};
  const sums = late('sums', async () => sumsOf(context, chosen, await get('summary', {segment: chosen.segment, ...timesOf(range)}), width, truth));
  const raw = late('raw', async () => h('div', {class: 'paperless'}, h('h2', {}, 'Intervals'),
    ...await Promise.all(chosen.lanes.map(async (lane) => rawTable(lane, await get('results', {...select(lane), ...timesOf(range), period: 'interval', limit: RAW}))))));
  return [...heading, legend(state.query.has('compare'), truth.size > 0), shown.element, exports(context, chosen), eventList(loaded.events),
    context.info.features?.includes('fleet') && range.until - range.since <= FETCH_MAX ? late('seconds', () => fetchSeconds(context, chosen)) : null, sums, raw];
}
