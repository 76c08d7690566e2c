// SPDX-License-Identifier: Apache-2.0
// The picture of a lane over time, as SVG: delay as bands, loss, what was measured, clocks, events. Each bin of the server is a column
// of its own (no line between bins), so a peak of one interval is seen, and a gap is a gap.
import {s, visible} from './dom.js';
import {delay, count, loss, percent, period, tickDelay, timeTicks, linearTicks, logTicks, UNKNOWN} from './format.js';

const LEFT = 62, RIGHT = 10, TOP = 16, DELAY = 190, LOSS = 46, COVER = 13, CLOCK = 8, GAP = 7, AXIS = 20;
const BETWEEN = 4;        // pixels between what was measured and the clocks
const LOSS_FLOOR = 1e-5; // the loss axis is logarithmic, from 0.001 % to 100 %

export const plotWidth = (width) => Math.max(120, width - LEFT - RIGHT);
const round = (v) => Math.round(v * 10) / 10;
const known = (v) => v !== null && v !== undefined;

/** The lowest and highest delays of a series, and its highest p99. */
export function extent(series) {
  const all = {low: Infinity, high: -Infinity, p99: -Infinity};
  for (let i = 0; i < series.start_ns.length; i++) {
    const low = series.min[i] ?? series.p50[i];
    const high = series.max[i] ?? series.p99[i] ?? series.p50[i];
    if (known(low)) all.low = Math.min(all.low, low);
    if (known(high)) all.high = Math.max(all.high, high);
    if (known(series.p99[i] ?? high)) all.p99 = Math.max(all.p99, series.p99[i] ?? high);
  }
  return all;
}

/** A common scale for several series. Kinds: auto, zero (linear from 0), p99 (up to the highest p99), log. */
export function scaleOf(all, kind) {
  const sum = all.map(extent).reduce((a, b) => ({low: Math.min(a.low, b.low), high: Math.max(a.high, b.high), p99: Math.max(a.p99, b.p99)}),
    {low: Infinity, high: -Infinity, p99: -Infinity});
  let {low} = sum;
  let high = kind === 'p99' ? sum.p99 : sum.high;
  if (!(high > -Infinity)) return {low: 0, high: 1e6, log: false, empty: true};
  const log = low > 0 && (kind === 'log' || (kind === 'auto' && high > 8 * low));
  if (log) return {low: low * 0.9, high: high * 1.1, log};
  if (kind === 'zero') low = Math.min(0, low);
  const room = (high - low) * 0.06 || Math.abs(high) * 0.05 || 1;
  return {low: kind === 'zero' ? low : low - room, high: high + room, log};
}

function yOf(scale) {
  const [low, high] = scale.log ? [Math.log(scale.low), Math.log(scale.high)] : [scale.low, scale.high];
  return (value) => {
    const at = (scale.log ? Math.log(Math.max(value, scale.low / 2)) : value) - low;
    return TOP + DELAY - Math.min(1.03, Math.max(-0.03, at / (high - low))) * DELAY;
  };
}

/** Columns of the bins: left and right edge in pixels. */
function columns(series, view) {
  const scale = plotWidth(view.width) / (view.until - view.since);
  const left = [], right = [];
  for (let i = 0; i < series.start_ns.length; i++) {
    const start = (series.start_ns[i] / 1e6 - view.since) * scale;
    left.push(LEFT + Math.max(0, start));
    right.push(LEFT + Math.min(plotWidth(view.width), start + (series.bin_ns / 1e6) * scale));
  }
  return {left, right};
}

/** Runs of bins for which `test` holds, each of which begins where the one before ends. */
function runs(column, test) {
  const found = [];
  const {left, right} = column;
  for (let i = 0; i < left.length; i++) {
    if (!test(i)) continue;
    const first = i;
    while (i + 1 < left.length && left[i + 1] - right[i] < 0.5 && test(i + 1)) i++;
    found.push([first, i]);
  }
  return found;
}

/** The area between two values of each bin, as steps. */
function band(column, low, high, y) {
  let path = '';
  for (const [first, last] of runs(column, (i) => known(low[i]) && known(high[i]))) {
    path += `M${round(column.left[first])} ${round(y(high[first]))}`;
    for (let i = first; i <= last; i++) path += `V${round(y(high[i]))}H${round(column.right[i])}`;
    for (let i = last; i >= first; i--) path += `V${round(y(low[i]) + 0.4)}H${round(column.left[i])}`;
    path += 'Z';
  }
  return path;
}

function line(column, values, y) {
  let path = '';
  for (const [first, last] of runs(column, (i) => known(values[i]))) {
    path += `M${round(column.left[first])} ${round(y(values[first]))}`;
    for (let i = first; i <= last; i++) path += `V${round(y(values[i]))}H${round(column.right[i])}`;
  }
  return path;
}

const boxes = (column, list, top, height) => list.map(([first, last]) =>
  `M${round(column.left[first])} ${top}H${round(Math.max(column.right[last], column.left[first] + 1))}V${top + height}H${round(column.left[first])}Z`).join('');

/** Patterns for what is not known: they differ in shape, not only in colour. */
function patterns(id) {
  const hatch = (kind, size, ...marks) => s('pattern', {id: `${id}-${kind}`, width: size, height: size, patternUnits: 'userSpaceOnUse'}, marks);
  return s('defs', {},
    hatch('partial', 6, s('path', {d: 'M-1 7L7 -1M-1 1L1 -1M5 7L7 5', class: 'hatch-partial'})),
    hatch('unknown', 7, s('path', {d: 'M0 0L7 7M7 0L0 7', class: 'hatch-unknown'})),
    hatch('missing', 6, s('circle', {cx: 3, cy: 3, r: 0.9, class: 'hatch-missing'})),
    hatch('clock', 4, s('circle', {cx: 1, cy: 1, r: 0.8, class: 'hatch-clock'}), s('circle', {cx: 3, cy: 3, r: 0.8, class: 'hatch-clock'})));
}

const share = (series, key, i) => (series.intervals[i] || series.missing[i] ? (series[key][i] || 0) / Math.max(1, statesOf(series, i)) : 0);
const statesOf = (series, i) => (series.measured[i] || 0) + (series.partial[i] || 0) + (series.unknown[i] || 0) + (series.missing[i] || 0);

/** What was measured: parts of the strip's height; whatever there is has two pixels at least. */
function coverage(series, column, id, top) {
  const paths = {measured: '', partial: '', unknown: '', missing: ''};
  for (let i = 0; i < series.start_ns.length; i++) {
    let y = top + COVER;
    for (const key of ['measured', 'partial', 'unknown', 'missing']) {
      const part = share(series, key, i);
      if (!part) continue;
      const height = Math.min(y - top, Math.max(2, part * COVER));
      paths[key] += boxes(column, [[i, i]], y - height, height);
      y -= height;
    }
  }
  return [s('path', {d: paths.measured, class: 'covered'}),
    ...['partial', 'unknown', 'missing'].flatMap((key) => [s('path', {d: paths[key], class: `ground-${key}`}), s('path', {d: paths[key], fill: `url(#${id}-${key})`})])];
}

/** Times of which nothing or only a part is known, over the whole height. */
function hatches(series, column, id) {
  const most = (key) => runs(column, (i) => share(series, key, i) >= 0.5);
  return ['partial', 'unknown', 'missing'].flatMap((key) => {
    const d = boxes(column, most(key), TOP, DELAY);
    return d ? [s('path', {d, class: `ground-${key}`}), s('path', {d, fill: `url(#${id}-${key})`, class: `span-${key}`})] : [];
  });
}

function lossHeight(ratio) {
  return ratio > 0 ? Math.max(3, (1 - Math.log10(Math.max(ratio, LOSS_FLOOR)) / Math.log10(LOSS_FLOOR)) * LOSS) : 0;
}

function lossBars(series, column, top, kind) {
  let d = '';
  for (let i = 0; i < series.start_ns.length; i++) {
    const height = lossHeight(series.loss_ratio[i]);
    if (height) d += boxes(column, [[i, i]], round(top + LOSS - height), round(height));
  }
  return s('path', {d, class: kind});
}

/** Where the clocks' part in the delays is not known, the strip has another pattern. */
function clocks(series, column, id, top) {
  const with_delay = (i) => series.samples[i] > 0;
  const unknown = boxes(column, runs(column, (i) => with_delay(i) && !known(series.clock_error_ns[i])), top, CLOCK);
  const sure = boxes(column, runs(column, (i) => with_delay(i) && known(series.clock_error_ns[i])), top, CLOCK);
  return [s('path', {d: sure, class: 'clock-known'}), s('path', {d: unknown, class: 'ground-unknown'}), s('path', {d: unknown, fill: `url(#${id}-unknown)`})];
}

function grid(view, scale, y) {
  const width = plotWidth(view.width);
  const x = (at) => LEFT + ((at - view.since) / (view.until - view.since)) * width;
  const ticks = scale.empty ? [] : scale.log ? logTicks(scale.low, scale.high) : linearTicks(scale.low, scale.high, 5);
  const bottom = TOP + DELAY + GAP + LOSS + GAP + COVER + BETWEEN + CLOCK;
  const lossTop = TOP + DELAY + GAP;
  return [
    ticks.map((value) => [s('line', {x1: LEFT, x2: LEFT + width, y1: round(y(value)), y2: round(y(value)), class: 'grid'}),
      s('text', {x: LEFT - 6, y: round(y(value)) + 4, class: 'tick end'}, tickDelay(value))]),
    [[1, '100 %'], [1e-2, '1 %'], [1e-4, '0.01 %']].map(([ratio, text]) => {
      const at = round(lossTop + LOSS - lossHeight(ratio));
      return [s('line', {x1: LEFT, x2: LEFT + width, y1: at, y2: at, class: 'grid'}), s('text', {x: LEFT - 6, y: at + 4, class: 'tick end'}, text)];
    }),
    s('line', {x1: LEFT, x2: LEFT + width, y1: lossTop + LOSS, y2: lossTop + LOSS, class: 'axis'}),
    s('text', {x: LEFT - 6, y: bottom - CLOCK - BETWEEN - 2, class: 'tick end'}, 'measured'),
    s('text', {x: LEFT - 6, y: bottom, class: 'tick end'}, 'clocks'),
    s('text', {x: LEFT + 5, y: TOP + 13, class: 'tick'}, 'one-way delay'),
    s('text', {x: LEFT + 5, y: lossTop + 10, class: 'tick'}, 'loss'),
    timeTicks(view.since, view.until, Math.max(2, Math.floor(width / 78))).map(({at, text}) => [
      s('line', {x1: round(x(at)), x2: round(x(at)), y1: TOP, y2: bottom + 3, class: 'grid'}),
      s('text', {x: round(Math.min(LEFT + width - 14, Math.max(LEFT + 12, x(at)))), y: bottom + 16, class: 'tick middle'}, text)]),
  ];
}

const EVENT_SHAPES = {clock: 'M-5 -5H5V5H-5Z', incident: 'M0 7L-6 -5H6Z', point: 'M0 -6L6 0L0 6L-6 0Z', flow: 'M-5 0A5 5 0 1 0 5 0A5 5 0 1 0 -5 0Z'};

/** Which mark an event has. */
export function markOf(kind) {
  if (/clock|step/.test(kind)) return 'clock';
  if (/incident|broken|unmeasured/.test(kind)) return 'incident';
  return /point|away|unknown|partial|silent/.test(kind) ? 'point' : 'flow';
}

function marks(view, events) {
  const width = plotWidth(view.width);
  return events.filter((event) => event.time_ns / 1e6 >= view.since && event.time_ns / 1e6 < view.until).map((event) => {
    const x = round(LEFT + ((event.time_ns / 1e6 - view.since) / (view.until - view.since)) * width);
    return s('g', {class: 'event', transform: `translate(${x} 8)`},
      s('line', {y1: 6, y2: TOP + DELAY - 8, class: 'event-line'}), s('path', {d: EVENT_SHAPES[markOf(event.kind)], class: `event-${markOf(event.kind)}`}), s('title', {}, visible(event.text || event.kind)));
  });
}

function errorBand(series, column, y) {
  const side = (sign) => series.p50.map((v, i) => (known(v) && known(series.clock_error_ns[i]) ? v + sign * series.clock_error_ns[i] : null));
  const [low, high] = [side(-1), side(1)];
  return [s('path', {d: band(column, low, high, y), class: 'clock-error'}), s('path', {d: line(column, low, y) + line(column, high, y), class: 'clock-edge'})];
}

/** Values above the upper end of the scale, as small arrows: nothing is cut off without a mark. */
function above(series, column, scale) {
  const d = series.max.map((v, i) => (known(v) && v > scale.high ? `M${round((column.left[i] + column.right[i]) / 2)} ${TOP}l3 5h-6Z` : '')).join('');
  return s('path', {d, class: 'above'});
}

/** The true mean of each interval, as a lab's wire knows it. */
function truthMarks(intervals, view, y) {
  const scale = plotWidth(view.width) / (view.until - view.since);
  const x = (ns) => LEFT + (ns / 1e6 - view.since) * scale;
  const d = intervals.filter((one) => known(one.delay_ns.mean) && x(one.start_ns + one.length_ns) > LEFT && x(one.start_ns) < LEFT + plotWidth(view.width)).map((one) =>
    `M${round(x(one.start_ns))} ${round(y(one.delay_ns.mean))}H${round(Math.max(x(one.start_ns + one.length_ns), x(one.start_ns) + 2))}`).join('');
  return s('path', {d, class: 'truth', data: {drawn: 'truth'}});
}

let drawn = 0;

/** Draws a lane. view: {width, since, until} in pixels and ms; `before`: the series of last week, moved to this time. */
export function draw(series, view, scale, {before, events = [], truth, label}) {
  const id = `chart${++drawn}`;
  const y = yOf(scale);
  const column = columns(series, view);
  const lossTop = TOP + DELAY + GAP, coverTop = lossTop + LOSS + GAP, clockTop = coverTop + COVER + BETWEEN;
  const height = clockTop + CLOCK + AXIS;
  const then = before && columns(before, view);
  const clip = `${id}-clip`;
  return s('svg', {width: view.width, height, viewBox: `0 0 ${view.width} ${height}`, class: 'chart', 'aria-hidden': 'true', focusable: 'false',
    data: {left: LEFT, plotWidth: plotWidth(view.width), top: TOP, bottom: TOP + DELAY, low: scale.low, high: scale.high, log: scale.log ? 1 : 0, since: view.since, until: view.until}},
  s('title', {}, label), patterns(id), s('clipPath', {id: clip}, s('rect', {x: LEFT, y: TOP, width: plotWidth(view.width), height: DELAY})),
  s('rect', {x: LEFT, y: TOP, width: plotWidth(view.width), height: DELAY, class: 'plot'}),
  grid(view, scale, y), hatches(series, column, id),
  s('g', {'clip-path': `url(#${clip})`},
    before && [s('path', {d: band(then, before.p50, before.p99, y), class: 'before-band'}), s('path', {d: line(then, before.p50, y), class: 'before'})],
    s('path', {d: band(column, series.min, series.p50, y), class: 'band-low', data: {drawn: 'min-p50'}}),
    s('path', {d: band(column, series.p99, series.max, y), class: 'band-max', data: {drawn: 'p99-max'}}),
    s('path', {d: band(column, series.p90, series.p99, y), class: 'band-p99', data: {drawn: 'p90-p99'}}),
    s('path', {d: band(column, series.p50, series.p90, y), class: 'band-p90', data: {drawn: 'p50-p90'}}),
    errorBand(series, column, y),
    s('path', {d: line(column, series.p50, y), class: 'median', data: {drawn: 'p50'}}), truth && truthMarks(truth, view, y), above(series, column, scale)),
  before && lossBars(before, then, lossTop, 'before-loss'), lossBars(series, column, lossTop, 'loss'),
  coverage(series, column, id, coverTop), clocks(series, column, id, clockTop),
  marks(view, events), s('rect', {class: 'selection', y: TOP, height: clockTop + CLOCK - TOP, width: 0, x: LEFT}), s('line', {class: 'cursor', y1: TOP, y2: clockTop + CLOCK, x1: -9, x2: -9}));
}

/** The causes of what is not known between two times. */
export const causesIn = (series, from, to) => (series.causes || []).filter((cause) => cause.start_ns / 1e6 < to && cause.end_ns / 1e6 > from);

/** What a bin says, as pairs of a word and its value. */
export function binText(series, i) {
  const from = series.start_ns[i] / 1e6, to = from + series.bin_ns / 1e6;
  const pairs = [['time', period(from, to)]];
  if (series.samples[i] > 0) {
    const bounds = known(series.p99_low?.[i]) && series.p99_low[i] !== series.p99_high[i] ? ` (${delay(series.p99_low[i])} to ${delay(series.p99_high[i])})` : '';
    pairs.push(['min', delay(series.min[i])], ['p50', delay(series.p50[i])], ['p90', delay(series.p90[i])], ['p99', delay(series.p99[i]) + bounds], ['max', delay(series.max[i])],
      ['mean', delay(series.mean[i])], ['of', `${count(series.samples[i])} packets`],
      ['clock error', known(series.clock_error_ns[i]) ? `± ${delay(series.clock_error_ns[i])}` : UNKNOWN]);
    if (series.p99_worst && known(series.p99_worst[i]) && series.intervals[i] > 1) pairs.push(['worst p99 of an interval', delay(series.p99_worst[i])]);
  } else {
    pairs.push(['delay', UNKNOWN]);
  }
  pairs.push(['lost', loss(series.lost[i], known(series.sent[i]) ? series.sent[i] - (series.pending?.[i] || 0) : null, series.loss_ratio[i])]);
  if (series.loss_worst && series.loss_worst[i] > 0 && series.intervals[i] > 1) pairs.push(['worst loss of an interval', percent(series.loss_worst[i])]);
  for (const key of ['late', 'duplicated', 'pending']) if (series[key]?.[i]) pairs.push([key, count(series[key][i])]);
  const states = ['measured', 'partial', 'unknown', 'missing'].filter((key) => series[key][i]).map((key) => `${count(series[key][i])} ${key}`);
  pairs.push(['intervals', states.join(', ') || 'none']);
  const causes = causesIn(series, from, to).slice(0, 3).map((cause) => cause.cause || cause.cause_code);
  if (causes.length) pairs.push(['because', causes.join('; ')]);
  return pairs;
}

/** The bin at a time, or -1. */
export function binAt(series, ms) {
  let low = 0, high = series.start_ns.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (series.start_ns[middle] / 1e6 <= ms) low = middle;
    else high = middle - 1;
  }
  return series.start_ns.length && ms >= series.start_ns[low] / 1e6 && ms < series.start_ns[low] / 1e6 + series.bin_ns / 1e6 ? low : -1;
}
