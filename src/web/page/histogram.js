// SPDX-License-Identifier: Apache-2.0
// The distribution of delays: bars whose area is the number of packets, and the share of packets that are slower (right axis).
import {s} from './dom.js';
import {delay, tickDelay, linearTicks, logTicks} from './format.js';

const LEFT = 14, RIGHT = 62, TOP = 10, HEIGHT = 150, AXIS = 22;
const TAIL = 1e-6; // the axis of the share ends here

const round = (v) => Math.round(v * 10) / 10;

/** Neighbouring buckets together, so that each is at least `least` pixels wide. */
function merged({low_ns: low, high_ns: high, packets}, x, least) {
  const out = [];
  for (let i = 0; i < packets.length; i++) {
    const last = out[out.length - 1];
    if (last && x(last.high) - x(last.low) < least && x(low[i]) - x(last.high) < 1) {
      last.high = high[i];
      last.packets += packets[i];
    } else {
      out.push({low: low[i], high: high[i], packets: packets[i]});
    }
  }
  return out;
}

/** The end of the scale that holds all packets. */
function axis(distribution, width) {
  const low = distribution.low_ns[0], high = Math.max(distribution.high_ns[distribution.high_ns.length - 1], low + 1);
  const log = low > 0 && high > 4 * low;
  const f = log ? Math.log : (v) => v;
  const room = (f(high) - f(low)) * 0.02;
  const [from, to] = [f(low) - room, f(high) + room];
  return {x: (v) => LEFT + ((f(v) - from) / (to - from)) * width, ticks: log ? logTicks(low, high) : linearTicks(low, high, 6)};
}

function tail(distribution, x, y, sum) {
  let left = sum, d = '';
  distribution.packets.forEach((n, i) => {
    d += `${i ? 'L' : 'M'}${round(x(distribution.low_ns[i]))} ${round(y(left / sum))}`;
    left -= n;
    d += `L${round(x(distribution.high_ns[i]))} ${round(y(Math.max(left / sum, TAIL / 2)))}`;
  });
  return s('path', {d, class: 'tail'});
}

/** distribution: {low_ns, high_ns, packets} in order; quantiles: [[text, ns]]. */
export function drawDistribution(distribution, width, quantiles, label) {
  const plot = Math.max(100, width - LEFT - RIGHT);
  const {x, ticks} = axis(distribution, plot);
  const sum = distribution.packets.reduce((a, b) => a + b, 0);
  const bars = merged(distribution, x, 3).map((bar) => ({...bar, dense: bar.packets / Math.max(0.5, x(bar.high) - x(bar.low))}));
  const most = Math.max(...bars.map((bar) => bar.dense));
  const bottom = TOP + HEIGHT;
  const shareY = (share) => TOP + (Math.log10(Math.max(share, TAIL)) / Math.log10(TAIL)) * HEIGHT;
  const d = bars.map((bar) => {
    const height = Math.max(1, (bar.dense / most) * HEIGHT);
    return `M${round(x(bar.low))} ${bottom}V${round(bottom - height)}H${round(Math.max(x(bar.high), x(bar.low) + 1))}V${bottom}Z`;
  }).join('');
  const height = bottom + AXIS;
  let lastTick = -Infinity;
  return s('svg', {width, height, viewBox: `0 0 ${width} ${height}`, class: 'chart histogram', 'aria-hidden': 'true', focusable: 'false', data: {packets: sum}},
    s('title', {}, label),
    [1, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5].map((share) => [s('line', {x1: LEFT, x2: LEFT + plot, y1: round(shareY(share)), y2: round(shareY(share)), class: 'grid'}),
      s('text', {x: LEFT + plot + 5, y: round(shareY(share)) + 4, class: 'tick'}, `${Number((share * 100).toPrecision(2))} %`)]),
    ticks.map((value) => {
      const at = round(x(value));
      const text = at - lastTick > 58 && at > LEFT + 12 && at < LEFT + plot - 10;
      if (text) lastTick = at;
      return [s('line', {x1: at, x2: at, y1: TOP, y2: bottom + (text ? 4 : 0), class: 'grid'}), text && s('text', {x: at, y: bottom + 16, class: 'tick middle'}, tickDelay(value))];
    }),
    s('path', {d, class: 'bars'}), tail(distribution, x, shareY, sum), s('line', {x1: LEFT, x2: LEFT + plot, y1: bottom, y2: bottom, class: 'axis'}),
    quantiles.filter(([, ns]) => ns !== null && ns !== undefined).map(([text, ns]) => [
      s('line', {x1: round(x(ns)), x2: round(x(ns)), y1: TOP, y2: bottom, class: 'quantile'}, s('title', {}, `${text}: ${delay(ns)}`)),
      s('text', {x: round(x(ns)) + 3, y: TOP + 9, class: 'tick quantile-name'}, text)]));
}

/** At most `rows` rows: {low, high, packets, slower}. */
export function distributionRows(distribution, rows) {
  const sum = distribution.packets.reduce((a, b) => a + b, 0);
  const each = Math.ceil(distribution.packets.length / rows);
  const out = [];
  let left = sum;
  for (let i = 0; i < distribution.packets.length; i += each) {
    const packets = distribution.packets.slice(i, i + each).reduce((a, b) => a + b, 0);
    left -= packets;
    out.push({low: distribution.low_ns[i], high: distribution.high_ns[Math.min(i + each, distribution.high_ns.length) - 1], packets, share: packets / sum, slower: left});
  }
  return out;
}
