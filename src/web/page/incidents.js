// SPDX-License-Identifier: Apache-2.0
// What the station says: the place at fault, the evidence, and why, as text.
import {h, name, visible} from './dom.js';
import {time, period, delay, percent} from './format.js';
import {iso} from './address.js';

const LATE = 30e3; // ms: the station judges an interval when it is final, so it is always somewhat behind
const AROUND = 0.5; // of the length of an incident is shown before and after it

/** The range in which to look at an incident. */
function around(incident, now) {
  const start = incident.start_ns / 1e6, end = incident.end_ns ? incident.end_ns / 1e6 : now;
  const room = Math.max(60e3, (end - start) * AROUND);
  return {since: iso(start - room), until: iso(Math.min(end + room, now))};
}

function evidenceText(one) {
  if (typeof one === 'string') return visible(one);
  if (one.text) return visible(one.text);
  return Object.entries(one).filter(([, value]) => value !== null && typeof value !== 'object').map(([key, value]) =>
    `${visible(key)}: ${typeof value === 'number' && key.endsWith('_ns') ? delay(value) : typeof value === 'number' && /ratio|loss$/.test(key) ? percent(value) : visible(value)}`).join(', ');
}

export function incidentElement(context, incident) {
  const now = context.info.now_ns / 1e6;
  const target = incident.segment ? context.link('segment', {segment: incident.segment, from: incident.from, to: incident.to, class: incident.class, ...around(incident, now)}) : null;
  const when = incident.end_ns ? period(incident.start_ns / 1e6, incident.end_ns / 1e6) : `since ${time(incident.start_ns / 1e6)}, not over`;
  return h('article', {class: `incident kind-${incident.kind === 'unmeasured' ? 'unknown' : 'loss'}`},
    h('h3', {}, h('i', {'aria-hidden': 'true'}, incident.kind === 'unmeasured' ? '? ' : '✕ '), target ? h('a', {href: target}, visible(incident.text)) : visible(incident.text)),
    h('p', {class: 'note'}, when, incident.from && incident.to ? [' · ', h('a', {href: context.link('path', {from: incident.from, to: incident.to, ...around(incident, now)})}, 'path ', name(incident.from), ' → ', name(incident.to))] : null),
    incident.why?.length ? h('div', {class: 'why'}, h('b', {}, 'Why: '), incident.why.length === 1 ? visible(incident.why[0]) : h('ul', {}, incident.why.map((line) => h('li', {}, visible(line))))) : null,
    incident.evidence?.length ? h('details', {}, h('summary', {}, 'Evidence'), h('ul', {}, incident.evidence.map((one) => h('li', {}, evidenceText(one))))) : null);
}

/** Those that go on first, what is broken before what is not measured, then the newest. */
const first = (a, b) => (a.end_ns ? 1 : 0) - (b.end_ns ? 1 : 0) || (a.kind === 'unmeasured' ? 1 : 0) - (b.kind === 'unmeasured' ? 1 : 0) || b.start_ns - a.start_ns;

export function incidentList(context, verdicts, title) {
  const until = Math.min(context.range.until, (context.info.last_ns || 0) / 1e6);
  const body = verdicts.error ? h('p', {}, `There is no verdict: ${visible(verdicts.error)}`)
    : verdicts.incidents.length ? [...verdicts.incidents].sort(first).slice(0, 30).map((incident) => incidentElement(context, incident))
      : h('p', {}, verdicts.problem ? `There is no verdict: ${visible(verdicts.problem)}` : verdicts.judged_from_ns
        ? `No incident: the station has judged ${period(verdicts.judged_from_ns / 1e6, verdicts.judged_until_ns / 1e6)}. ${verdicts.judged_until_ns / 1e6 < until - LATE ? 'Later results are not judged yet. ' : ''}An incident is a change for the worse that lasts; loss and delays that were there before are not one.`
        : 'There is no verdict yet: the station has judged nothing.');
  return h('section', {class: 'panel', data: {verdicts: verdicts.incidents.length}}, h('h2', {}, title), body,
    verdicts.incidents.length > 30 ? h('p', {class: 'note'}, `${verdicts.incidents.length - 30} more: see the events.`) : null);
}
