// SPDX-License-Identifier: Apache-2.0
// Everything that a view shows is in its address: #/segment?segment=wan&class=voice&from=london&to=paris&since=-24h

export const VIEWS = ['network', 'matrix', 'segment', 'path', 'events', 'points', 'flows'];
const WORD = /^-(\d+(?:\.\d+)?)(s|min|h|d)$/;
const UNIT = {s: 1e3, min: 60e3, h: 3600e3, d: 86400e3};

/** {view, query} of a fragment. */
export function read(hash) {
  const text = hash.replace(/^#\/?/, '');
  const mark = text.indexOf('?');
  const view = mark < 0 ? text : text.slice(0, mark);
  return {view: VIEWS.includes(view) ? view : 'network', query: new URLSearchParams(mark < 0 ? '' : text.slice(mark + 1))};
}

/** The address of a view. `changes`: values, lists, or null for none. Within a view all else stays; other views keep the time. */
export function link(state, view, changes) {
  const query = new URLSearchParams(view === state.view ? state.query : [...state.query].filter(([key]) => key === 'since' || key === 'until'));
  for (const [key, value] of Object.entries(changes || {})) {
    query.delete(key);
    for (const one of [value].flat()) if (one !== null && one !== undefined && one !== '') query.append(key, one);
  }
  const text = query.toString();
  return `#/${view}${text ? `?${text}` : ''}`;
}

/** A time of the address in ms: -24h before now, or ISO 8601. NaN if it is neither. */
export function moment(text, now) {
  const word = WORD.exec(text);
  return word ? now - word[1] * UNIT[word[2]] : Date.parse(text);
}

export const iso = (ms) => new Date(Math.round(ms)).toISOString();

/** What is shown when the address has no time: up to a day before now, or the last day of results if they are older. */
function usual(info) {
  const [now, first, last] = [info.now_ns / 1e6, info.first_ns / 1e6, info.last_ns / 1e6];
  if (info.last_ns && now - last > UNIT.h) return {since: iso(Math.max(first, last - UNIT.d)), until: iso(last + UNIT.s)};
  const age = info.first_ns ? now - first : UNIT.h;
  return {since: age <= 5 * UNIT.min ? '-5min' : age <= 15 * UNIT.min ? '-15min' : age <= UNIT.h ? '-1h' : age <= 6 * UNIT.h ? '-6h' : '-24h'};
}

/** Whether the address has both times, and neither counts from now. */
export const isFixed = (query) => Date.parse(query.get('since')) < Date.parse(query.get('until'));

/** The range of time of an address: {since, until} in ms, and `live` if it ends now. */
export function range(query, info) {
  if (isFixed(query)) return {since: Math.floor(Date.parse(query.get('since'))), until: Math.ceil(Date.parse(query.get('until'))), live: false};
  const now = info.now_ns / 1e6;
  const words = query.has('since') ? {since: query.get('since'), until: query.get('until')} : usual(info);
  let since = moment(words.since, now);
  let until = words.until ? moment(words.until, now) : now;
  if (!(since < until)) [since, until] = [now - UNIT.h, now];
  const live = !words.until;
  if (!live) return {since: Math.floor(since), until: Math.ceil(until), live, words};
  // A range that moves begins at a full minute or hour: that is in the store as a sum.
  const whole = until - since >= UNIT.d ? UNIT.h : until - since >= UNIT.h ? UNIT.min : UNIT.s;
  return {since: Math.floor(since / whole) * whole, until: Math.ceil(until / UNIT.s) * UNIT.s, live, words};
}

/** The parameters of the API for a range. Whole ms, written with digits: JavaScript would round nanoseconds. */
export const timesOf = ({since, until}) => ({since_ns: `${Math.round(since)}000000`, until_ns: `${Math.round(until)}000000`});
