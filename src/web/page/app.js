// SPDX-License-Identifier: Apache-2.0
// The page: reads the address, asks the API, shows a view. The address is the only state.
import {h, visible, debounce} from './dom.js';
import {get, stream, ApiError} from './api.js';
import {VIEWS, read, link, range as rangeOf, isFixed, iso} from './address.js';
import {day, clock, zone, span, period, useUtc} from './format.js';

const TITLES = {network: 'Network', matrix: 'Matrix', segment: 'Segment', path: 'Path', events: 'Events', points: 'Points', flows: 'Flows'};
const RANGES = [['-5min', '5 min'], ['-15min', '15 min'], ['-1h', '1 h'], ['-6h', '6 h'], ['-24h', '24 h'], ['-7d', '7 d'], ['-30d', '30 d'], ['-90d', '90 d']];
const REFRESH = 2000; // ms: what comes in through the stream is drawn at most this often
const KEEP_LANES = 60000; // ms
const place = (id) => document.getElementById(id);

let info = null, lanes = null, lanesAt = 0;
let current = null; // {controller, view}: what is being shown
let kept = new Map(); // sections that are filled later: the old one stays until the new one is there
let drawnAt = 0, drawTime = 0, fresh = false;

// --- settings of this browser ---
const setting = (key, value) => {
  try {
    if (value === undefined) return localStorage.getItem(key);
    localStorage.setItem(key, value);
  } catch { /* no storage: not kept */ }
  return value;
};

function setTheme(theme) {
  setting('theme', theme);
  if (theme === 'auto') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  place('theme').textContent = theme;
  place('theme').setAttribute('aria-label', `Colours: ${theme}`);
}

function setZone(utc) {
  setting('utc', utc ? '1' : '0');
  useUtc(utc);
  place('zone').textContent = zone(Date.now());
  place('zone').setAttribute('aria-label', `Times: ${zone(Date.now())}`);
}

// --- the address ---
const state = () => read(location.hash);

function go(changes, {replace = false, view} = {}) {
  const now = state();
  const hash = link(now, view || now.view, changes);
  if (hash === location.hash) return;
  if (replace) {
    history.replaceState(null, '', hash);
    show();
  } else {
    location.hash = hash;
  }
}

function zoomOut() {
  const {since, until} = current.range;
  const length = until - since;
  const end = Math.min(until + length / 2, info.now_ns / 1e6);
  go({since: iso(end - 2 * length), until: iso(end)});
}

function shift(part) {
  const {since, until} = current.range;
  const step = (until - since) * part;
  go({since: iso(since + step), until: iso(until + step)});
}

// --- the bar with the time ---
const localInput = (ms) => `${day(ms)}T${clock(ms).slice(0, 8)}`;

/** Reads the field in the zone that is shown. */
function fromInput(text) {
  const asUtc = Date.parse(`${text}Z`);
  return Number.isNaN(asUtc) ? NaN : setting('utc') === '1' ? asUtc : new Date(text).getTime();
}

function rangeBar(range) {
  const field = (label, ms) => h('label', {class: 'field'}, h('span', {}, label), h('input', {type: 'datetime-local', step: 1, value: localInput(ms), data: {key: label}}));
  const [from, to] = [field('From', range.since), field('to', range.until)];
  const apply = (event) => {
    event.preventDefault();
    const [since, until] = [from, to].map((one) => fromInput(one.querySelector('input').value));
    if (since < until) go({since: iso(since), until: iso(until)});
  };
  const button = (text, label, action) => h('button', {type: 'button', 'aria-label': label, title: label, onclick: action, data: {key: label}}, text);
  return h('form', {class: 'rangebar', 'aria-label': 'Time', onsubmit: apply},
    h('div', {class: 'presets', role: 'group', 'aria-label': 'The last'}, RANGES.map(([word, text]) =>
      h('a', {href: link(state(), state().view, {since: word, until: null}), 'aria-current': range.live && range.words.since === word ? 'true' : null}, text))),
    h('div', {class: 'moves', role: 'group', 'aria-label': 'Move'}, button('◀', 'Earlier', () => shift(-0.5)), button('−', 'Zoom out', zoomOut),
      button('▶', 'Later', () => shift(0.5)), info.first_ns && button('All', 'All that is in the store', () => go({since: iso(info.first_ns / 1e6), until: iso(info.last_ns / 1e6 + 1000)}))),
    h('div', {class: 'dates'}, from, to, h('button', {type: 'submit'}, 'Show'), h('span', {class: 'note'}, `${span(range.until - range.since)}, ${zone(range.since)}`)));
}

// --- views ---
/** A module, and at the same time those that it needs. */
const together = (...names) => Promise.all(names.map((one) => import(`./${one}.js`))).then(([first]) => first);

const modules = {
  network: () => import('./view_network.js'), matrix: () => import('./view_matrix.js'), segment: () => together('view_segment', 'chart', 'histogram', 'interact', 'save'), path: () => import('./view_path.js'),
  events: () => import('./view_events.js'), points: () => import('./view_points.js'), flows: () => import('./view_flows.js'),
};

function problem(text) {
  place('problem').hidden = !text;
  place('problem').textContent = text || '';
}

/** The first and the last result: of the shortest periods that reach as far, because longer ones begin at full hours and days. */
function extentOf({periods = {}}) {
  const lengths = {interval: 0, minute: 60e9, hour: 3600e9, day: 86400e9};
  let first = null, last = null;
  for (const [period, length] of Object.entries(lengths)) {
    const one = periods[period];
    if (!one || typeof one.first_ns !== 'number') continue;
    if (first === null || one.first_ns + length < first) first = one.first_ns;
    last = Math.max(last ?? 0, one.last_ns);
  }
  return {first_ns: first, last_ns: last};
}

/** Asks for what every view needs. `known`: the store and the server's time; `ready`: the lanes as well. */
function refreshInfo(signal) {
  const asked = performance.now();
  const known = get('', {}, signal).then((answer) => { info = {...extentOf(answer), ...answer}; });
  const listed = lanes?.length && asked - lanesAt < KEEP_LANES ? null : get('lanes', {}, signal).then((answer) => { lanes = answer.lanes; lanesAt = asked; });
  const ready = Promise.all([known, listed]);
  for (const one of [known, ready]) one.catch(() => {}); // they are awaited later
  return {known, ready};
}

/** A section that needs another answer: the old one, or a line, until the new one is there. */
function lateSection(key, make, signal, view) {
  const box = h('div', {'aria-busy': 'true', class: 'late'});
  const old = kept.get(view + key);
  box.append(...(old ? [...old.childNodes] : [h('p', {class: 'note'}, 'Loading…')]));
  kept.set(view + key, box);
  make().then((element) => box.replaceChildren(element), (error) => {
    if (error.name !== 'AbortError') box.replaceChildren(h('p', {class: 'error'}, visible(error.message)));
  }).finally(() => { if (!signal.aborted) box.removeAttribute('aria-busy'); });
  return box;
}

function focusKey() {
  return document.activeElement && document.activeElement.dataset ? document.activeElement.dataset.key : null;
}

function place_focus(key) {
  const again = key && [...document.querySelectorAll('[data-key]')].find((element) => element.dataset.key === key);
  if (again) again.focus({preventScroll: true});
}

function navigation(now) {
  place('views').replaceChildren(...VIEWS.filter((view) => view !== 'flows' || !info || info.features?.includes('flows') || now.view === 'flows').map((view) =>
    h('a', {href: link(now, view, {}), 'aria-current': view === now.view ? 'page' : null}, TITLES[view])));
}

/** Draws a part of the view again from what is there, until the answers come. */
function early(mine, replace, asked) {
  if (current !== mine) return;
  const key = focusKey();
  replace();
  place_focus(key);
  place('view').classList.add('early'); // what is below is of the range before
  requestAnimationFrame(() => Object.assign(document.documentElement.dataset, {early: Number(document.documentElement.dataset.early || 0) + 1, earlyMs: (performance.now() - asked).toFixed(1)}));
}

async function show() {
  const now = state();
  if (current) current.controller.abort();
  const controller = new AbortController();
  const mine = current = {controller, view: now.view, range: current && current.range, moved: !current || current.view !== now.view};
  place('view').setAttribute('aria-busy', 'true');
  const asked = drawnAt ? performance.now() : 0; // the first drawing: since the page is being loaded
  try {
    const {known, ready} = refreshInfo(controller.signal);
    // Times that are in the address do not depend on how far the store has come: then nothing waits for that.
    const [module] = await Promise.all([modules[now.view](), isFixed(now.query) ? null : known]);
    mine.range = rangeOf(now.query, info);
    const context = {
      get info() { return info; }, get lanes() { return lanes; }, ready, // null before they are ready for the first time
      state: now, range: mine.range, go, zoomOut, signal: controller.signal, width: place('view').clientWidth,
      early: (replace) => early(mine, replace, asked),
      again: () => { if (current === mine) show(); },
      link: (view, changes) => link(now, view, changes),
      get: (resource, parameters) => get(resource, parameters, controller.signal),
      late: (key, make) => lateSection(key, make, controller.signal, now.view),
    };
    const [content] = await Promise.all([module.view(context), ready]);
    if (current !== mine) return;
    const key = focusKey();
    place('view').classList.remove('early');
    place('view').replaceChildren(...content.flat(Infinity).filter(Boolean));
    place('range').replaceChildren(rangeBar(mine.range));
    navigation(now);
    place_focus(key);
    if (mine.moved) { scrollTo(0, 0); kept = new Map([...kept].filter(([name]) => name.startsWith(now.view))); }
    document.title = `${place('view').querySelector('h1')?.textContent || TITLES[now.view]} · oneway`;
    place('about').textContent = `oneway ${info.version || ''} · ${visible(info.store || '')} · results from ${info.first_ns ? period(info.first_ns / 1e6, info.last_ns / 1e6) : 'no time yet'} ${zone(Date.now())}`;
    problem('');
    await new Promise(requestAnimationFrame);
    drawTime = performance.now() - asked;
    Object.assign(document.documentElement.dataset, {view: now.view, drawn: Number(document.documentElement.dataset.drawn || 0) + 1, ms: drawTime.toFixed(1)});
  } catch (error) {
    if (error.name === 'AbortError' || current !== mine) return;
    problem(visible(error instanceof ApiError ? error.message : `This page has a fault: ${error.message}`));
    if (!(error instanceof ApiError)) console.error(error);
    navigation(now);
    if (mine.moved) place('view').replaceChildren(h('h1', {}, TITLES[now.view]));
    document.documentElement.dataset.drawn = Number(document.documentElement.dataset.drawn || 0) + 1;
  } finally {
    if (current === mine) {
      place('view').removeAttribute('aria-busy');
      drawnAt = performance.now();
    }
  }
}

// --- what is new ---
const LIVE = {live: 'live', away: 'no connection', off: ''};

/** A lane that is not in the list: the list is asked for again. */
function noteLane({data}) {
  const one = JSON.parse(data);
  if (!lanes?.some((lane) => lane.segment === one.segment && lane.class === one.class && lane.from === one.from && lane.to === one.to)) lanesAt = -KEEP_LANES;
}

// A browser has few connections to a server: a page that nobody sees must not hold one.
function follow() {
  let close = null;
  const heard = (word) => {
    place('live').textContent = LIVE[word];
    place('live').className = word;
    if (word === 'live' && place('problem').textContent) show();
  };
  const decide = (seen) => {
    if (seen && !close) {
      close = stream((event) => { fresh = true; noteLane(event); }, heard);
      fresh = true; // what came in the meantime
    } else if (!seen && close) {
      close();
      close = null;
      heard('off');
    }
  };
  addEventListener('pagehide', () => decide(false));
  addEventListener('pageshow', () => decide(!document.hidden));
  document.addEventListener('visibilitychange', () => decide(!document.hidden));
  decide(!document.hidden);
}

function watch() {
  follow();
  setInterval(() => {
    const range = current && current.range;
    if (!fresh || !range || !range.live || document.hidden || place('view').hasAttribute('aria-busy')) return;
    // A bin is a pixel: new results change the picture only as often. And the page leaves the server alone most of the time.
    const pause = Math.max(REFRESH, Math.min(60000, (range.until - range.since) / 1000), drawTime * 10);
    if (performance.now() - drawnAt < pause) return;
    fresh = false;
    show();
  }, 500);
}

function start() {
  setTheme(['light', 'dark'].includes(setting('theme')) ? setting('theme') : 'auto');
  setZone(setting('utc') === '1');
  place('theme').addEventListener('click', () => setTheme({auto: 'light', light: 'dark', dark: 'auto'}[setting('theme') || 'auto']));
  place('zone').addEventListener('click', () => { setZone(setting('utc') !== '1'); show(); });
  place('skip').addEventListener('click', (event) => { event.preventDefault(); place('view').focus(); });
  addEventListener('hashchange', show);
  let width = innerWidth;
  addEventListener('resize', debounce(150, () => { if (innerWidth !== width) { width = innerWidth; show(); } }));
  navigation(state());
  show().then(() => { if (info?.features?.includes('stream')) watch(); });
}

start();
