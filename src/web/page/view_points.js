// SPDX-License-Identifier: Apache-2.0
// The points: health, versions, clocks, drops, memory, certificates.
import {h, name, table, visible} from './dom.js';
import {time, delay, count, bytes, span, UNKNOWN} from './format.js';

const WARN = 14 * 86400e3; // a certificate that expires within this time is marked
const some = (value, show) => (value === null || value === undefined ? UNKNOWN : show(value));

function certificate(point, now) {
  const until = point.health?.certificate_until_s * 1000;
  if (!until) return UNKNOWN;
  return until - now < WARN ? h('b', {class: 'warn'}, `! ${until < now ? 'expired' : `in ${span(until - now)}`}`) : `in ${span(until - now)}`;
}

const last = (point) => (point.health ? point.health.last_result_ns : point.last_result_ns) || null;

function clock(point) {
  const {health} = point;
  if (health && !health.clock_known) return UNKNOWN;
  if (health && !health.clock_synchronised) return h('b', {class: 'warn'}, '! not synchronised');
  return some(health ? health.clock_error_ns : point.clock_error_ns, (ns) => `± ${delay(ns)}`);
}

export async function view(context) {
  const {get, state} = context;
  const [{points, problem}] = await Promise.all([get('points'), context.ready]);
  const now = context.info.now_ns / 1e6;
  const chosen = state.query.get('point');
  const rows = points.map((point) => ({...point, rowClass: point.point === chosen ? 'chosen' : null}));
  const columns = [
    {title: 'point', of: (point) => h('a', {href: context.link('points', {point: point.point}), data: {key: `point ${point.point}`}}, name(point.point))},
    {title: 'state', of: (point) => visible(point.state ?? UNKNOWN)},
    {title: 'problem', wide: true, of: (point) => visible(point.problem ?? point.health?.config_why ?? '')},
    {title: 'last result', number: true, of: (point) => (last(point) ? h('span', {title: time(last(point) / 1e6)}, `${span(Math.max(0, now - last(point) / 1e6))} ago`) : UNKNOWN)},
    {title: 'clock', number: true, of: clock},
    {title: 'dropped frames', number: true, of: (point) => some(point.health ? point.health.dropped : point.ring_drops, count)},
    {title: 'lanes', health: true, number: true, of: (point) => some(point.health?.lanes, count)},
    {title: 'peers', health: true, number: true, of: (point) => (point.health ? `${point.health.connected} of ${point.health.peers}` : UNKNOWN)},
    {title: 'memory', health: true, number: true, of: (point) => some(point.health?.memory_bytes, bytes)},
    {title: 'not stored', health: true, number: true, of: (point) => some(point.health?.store_lost, count)},
    {title: 'version', health: true, of: (point) => visible(point.health?.version ?? UNKNOWN)},
    {title: 'configuration', health: true, number: true, of: (point) => (point.health ? `${point.health.config_version}${point.config_desired && point.config_desired !== point.health.config_version ? ` of ${point.config_desired}` : ''}` : UNKNOWN)},
    {title: 'certificate expires', health: true, number: true, of: (point) => certificate(point, now)},
  ];
  const told = points.some((point) => point.health) ? columns : columns.filter((column) => !column.health);
  return [h('h1', {}, 'Points'), points.length ? h('section', {class: 'panel'}, table(`${points.length} points`, told, rows, {data: {points: points.length}})) : h('p', {}, 'There are no points in the store.'),
    points.some((point) => point.health) ? null : h('p', {class: 'note'}, problem ? `The fleet cannot be asked: ${visible(problem)}. Here is what results tell.` : 'What points say of themselves is known with a fleet: oneway web --fleet DIR. Here is what their results tell.')];
}
