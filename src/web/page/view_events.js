// SPDX-License-Identifier: Apache-2.0
// What happened: incidents, other routes, clock steps, points that went away. Each leads to its segment at that time.
import {h, name, table, choice, visible} from './dom.js';
import {time, period, count} from './format.js';
import {timesOf, iso} from './address.js';
import {markOf} from './chart.js';
import {incidentList} from './incidents.js';

const AROUND = 300e3; // ms before and after an event
const LIMIT = 500;
const SIGNS = {clock: '■', incident: '▼', point: '◆', flow: '●'};

const target = (context, event) => context.link('segment', {segment: event.segment, class: event.class, from: event.from, to: event.to, since: iso(event.time_ns / 1e6 - AROUND), until: iso(event.time_ns / 1e6 + AROUND)});

export async function view(context) {
  const {get, range, state, go} = context;
  const kind = state.query.get('kind');
  const [answer, verdicts] = await Promise.all([get('events', {...timesOf(range), limit: LIMIT}), get('verdicts', timesOf(range)).catch((error) => ({error: error.message, incidents: []})), context.ready]);
  const kinds = [...new Set(answer.events.map((event) => event.kind))].sort();
  const events = answer.events.filter((event) => !kind || event.kind === kind);
  const columns = [
    {title: 'time', of: (event) => (event.segment ? h('a', {href: target(context, event)}, time(event.time_ns / 1e6)) : time(event.time_ns / 1e6))},
    {title: 'kind', of: (event) => [h('i', {class: `mark mark-${markOf(event.kind)}`, 'aria-hidden': 'true'}, SIGNS[markOf(event.kind)]), ' ', visible(event.kind)]},
    {title: 'lane', of: (event) => (event.segment ? [name(event.segment), ' ', event.class ? name(event.class) : '', ' ', event.from ? [name(event.from), ' → ', name(event.to ?? '')] : ''] : event.from || event.point ? name(event.from || event.point) : '')},
    {title: 'what happened', wide: true, of: (event) => visible(event.text ?? '')},
  ];
  return [h('h1', {}, 'Events'), h('form', {class: 'controls', onsubmit: (event) => event.preventDefault()},
    choice('Kind', kind || '', [['', 'all'], ...kinds.map((one) => [one, one])], (one) => go({kind: one || null}))),
  incidentList(context, verdicts, 'Incidents'),
  h('h2', {}, 'All events, newest first'), events.length ? h('section', {class: 'panel'}, table(`${events.length} events, ${period(range.since, range.until)}`, columns, events, {data: {events: events.length}})) : h('p', {}, `No events in this time (${period(range.since, range.until)}).`),
  answer.omitted ? h('p', {class: 'note', data: {omitted: answer.omitted}}, `These are the newest ${count(answer.events.length)}; ${count(answer.omitted)} older ones of this time are not listed. Choose a shorter time for them.`) : null];
}
