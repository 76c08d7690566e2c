// SPDX-License-Identifier: Apache-2.0
// Elements. Text is always set as text: names come from other machines and may contain anything.

const SVG = 'http://www.w3.org/2000/svg';

function fill(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith('on')) element.addEventListener(key.slice(2), value);
    else if (key === 'data') Object.assign(element.dataset, value);
    else element.setAttribute(key, value === true ? '' : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** An HTML element: h('td', {class: 'number'}, '12') */
export const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);

/** An SVG element. */
export const s = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

// Controls, line breaks, zero-width characters and those that change the direction of text.
export const INVISIBLE = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/;

/** The text with what cannot be seen written as \u{202e}, so that no name can look like another. */
export const visible = (text) => String(text).replace(new RegExp(INVISIBLE, 'g'), (c) => `\\u{${c.codePointAt(0).toString(16)}}`);

/** A name as an element of its own direction. */
export const name = (text) => h('bdi', {}, visible(text));

const FIRST_ROWS = 30; // of a table; the others follow when these are on the screen
const FOLLOW = 60; // ms

/** A table: columns are {title, number or wide, of(row)}; `of` gives text or elements. A long one scrolls by itself. */
export function table(caption, columns, rows, attributes) {
  const head = columns.map((column) => h('th', {scope: 'col', class: column.number ? 'number' : null, title: column.hint}, column.title));
  const line = (row) => h('tr', {class: row.rowClass}, columns.map((column, i) =>
    h(i === 0 && column.header !== false ? 'th' : 'td', {scope: i === 0 && column.header !== false ? 'row' : null, class: column.number ? 'number' : column.wide ? 'text' : null}, column.of(row))));
  const body = h('tbody', {}, rows.slice(0, FIRST_ROWS).map(line));
  const region = h('div', {class: rows.length > FIRST_ROWS ? 'scroll tall' : 'scroll', tabindex: 0, role: 'region', 'aria-label': caption},
    h('table', attributes, h('caption', {}, caption), h('thead', {}, h('tr', {}, head)), body));
  if (rows.length > FIRST_ROWS) {
    region.setAttribute('aria-busy', 'true');
    setTimeout(() => { body.append(...rows.slice(FIRST_ROWS).map(line)); region.removeAttribute('aria-busy'); }, FOLLOW);
  }
  return region;
}

/** A labelled choice: options are [value, text]. */
export function choice(label, value, options, onchange) {
  const select = h('select', {onchange: () => onchange(select.value), data: {key: label}},
    options.map(([v, text]) => h('option', {value: v, selected: v === value}, visible(text))));
  return h('label', {class: 'field'}, h('span', {}, label), select);
}

/** Waits until nobody has called for `ms`. */
export function debounce(ms, action) {
  let timer = 0;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(action, ms, ...values);
  };
}
