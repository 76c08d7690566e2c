// SPDX-License-Identifier: Apache-2.0
// Flows: the slowest ones, and those that lost most.
import {h, name, table, choice, visible} from './dom.js';
import {delay, count, loss, UNKNOWN} from './format.js';
import {timesOf} from './address.js';

const PROTOCOLS = {1: 'ICMP', 6: 'TCP', 17: 'UDP', 58: 'ICMPv6', 132: 'SCTP'};
const end = (address, port) => `${address?.includes(':') && port ? `[${address}]` : address ?? '*'}${port === null || port === undefined ? '' : `:${port}`}`;

function flowText({flow}) {
  if (flow.class) return flow.class;
  return `${PROTOCOLS[flow.proto] ?? (flow.proto === null || flow.proto === undefined ? '' : `protocol ${flow.proto}`)} ${end(flow.src, flow.sport)} → ${end(flow.dst, flow.dport)}`;
}

/** With its interval of confidence, or the reason why there is none. */
function meanText(flow) {
  if (flow.mean_ns === null) return `${UNKNOWN}${flow.not_estimated?.mean ? `: ${visible(flow.not_estimated.mean)}` : ''}`;
  const pair = flow.ci95?.mean;
  return `${delay(flow.mean_ns)}${!pair ? '' : pair[0] === pair[1] ? ' (exact)' : ` (${delay(pair[0])} to ${delay(pair[1])})`}`;
}

/** Packets that were sent and did not arrive. */
const lostOf = (flow) => flow.lost ?? (typeof flow.sent === 'number' ? Math.max(0, flow.sent - flow.packets) : null);

export async function view(context) {
  await context.ready;
  const {get, range, state, go} = context;
  const worst = state.query.get('worst') || '50', by = state.query.get('by') || 'delay', of = state.query.get('of') || 'flows';
  const heading = [h('h1', {}, 'Flows'), h('form', {class: 'controls', onsubmit: (event) => event.preventDefault()},
    choice('Show', worst, [['20', 'the worst 20'], ['50', 'the worst 50'], ['200', 'the worst 200']], (n) => go({worst: n})),
    choice('Order', by, [['delay', 'certainly slow first'], ['loss', 'most lost first']], (one) => go({by: one === 'delay' ? null : one})),
    choice('Of', of, [['flows', 'flows'], ['prefix:24,48', 'networks (/24, /48)']], (one) => go({of: one === 'flows' ? null : one})))];
  if (!context.info.features?.includes('flows')) return [...heading, h('p', {}, 'Flows come from recordings: oneway web STORE --flows-from A.epochs --flows-to B.epochs')];
  const answer = await get('flows', {...timesOf(range), worst, order: by === 'loss' ? 'lost' : 'worst', ...(of === 'flows' ? {} : {by: of})});
  const flows = answer.flows || [];
  return [...heading, table(`${flows.length} of ${count(answer.flows_total ?? flows.length)} ${of === 'flows' ? 'flows' : 'networks'}${answer.flows_never_arrived ? `; of ${count(answer.flows_never_arrived)} of them nothing arrived` : ''}`, [
    {title: 'flow', of: (flow) => name(flowText(flow))},
    {title: 'mean delay (95 %)', number: true, of: meanText},
    {title: 'received', number: true, of: (flow) => `${count(flow.packets)} packets`},
    {title: 'lost', number: true, of: (flow) => (lostOf(flow) === null ? UNKNOWN : loss(lostOf(flow), flow.sent))},
    {title: 'estimator', of: (flow) => visible(flow.estimator ?? '')},
  ], flows, {data: {flows: flows.length}}), (answer.warnings || []).length ? h('ul', {}, answer.warnings.map((line) => h('li', {}, visible(line)))) : null];
}
