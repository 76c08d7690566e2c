// SPDX-License-Identifier: Apache-2.0
// The public interface /api/v1/: the page uses nothing else.

export class ApiError extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

/** The answer of a resource. Absent parameters are not sent. */
export async function get(resource, parameters, signal) {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(parameters || {})) if (value !== null && value !== undefined) query.set(key, value);
  const text = query.toString();
  let answer;
  try {
    answer = await fetch(`api/v1/${resource}${text ? `?${text}` : ''}`, {signal, headers: {Accept: 'application/json'}});
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new ApiError(0, 'The server does not answer.');
  }
  const body = await answer.json().catch(() => null);
  if (!answer.ok) throw new ApiError(answer.status, (body && body.error) || `The server answers with status ${answer.status}.`);
  return body;
}

/** What is new, as it comes. Returns what closes it. */
export function stream(onresult, onstate) {
  const source = new EventSource('api/v1/stream');
  source.addEventListener('open', () => onstate('live'));
  source.addEventListener('error', () => onstate('away'));
  source.addEventListener('result', onresult);
  source.addEventListener('flow_event', onresult);
  return () => source.close();
}
