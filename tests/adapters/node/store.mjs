// A small peek-lock store on a clock of its own, and the loop that lets `peeklock conform store` drive it.
// Node.js and nothing else: node tests/adapters/node/store.mjs. FAULT in the environment plants a mistake.
import { createInterface } from 'node:readline';

const FAULT = process.env.FAULT ?? '';

class Permanent extends Error {}
class Retryable extends Error {}

class Store {
  static tokens = 0; // never used again, so they count over all stores
  constructor() {
    this.now = 0;
    this.rows = new Map(); // in the order of their age
    this.done = [];
    this.failing = {};
  }

  enqueue({ item, delay_ms }) {
    this.rows.set(item, { visible: this.now + delay_ms, attempts: 0, token: null, lockedUntil: 0 });
  }

  fetch({ lock_timeout_ms }) {
    for (const [item, row] of this.rows) {
      const locked = row.token !== null && row.lockedUntil > this.now;
      if (row.visible > this.now || (locked && FAULT !== 'locks-nothing')) continue;
      row.token = `node-${++Store.tokens}`;
      row.lockedUntil = this.now + lock_timeout_ms;
      row.attempts += 1;
      return { item, token: row.token, attempt_count: row.attempts };
    }
    return null;
  }

  // The item that the token is current for; where the lock has to hold, it must not have run out.
  find(token, mustHold) {
    for (const [item, row] of this.rows) {
      if (row.token !== token) continue;
      if (mustHold && row.lockedUntil <= this.now) throw new Permanent(`the lock of ${token} has expired`);
      return [item, row];
    }
    throw new Permanent(`token ${token} is not current`);
  }

  renew({ token, extend_for_ms }) {
    this.find(token, true)[1].lockedUntil = this.now + extend_for_ms;
  }

  ack({ token, completion }) {
    const [item] = this.find(token, FAULT !== 'stale-ack');
    this.rows.delete(item);
    if (completion !== null) this.done.push({ item, completion });
  }

  abandon({ token, delay_ms, ignore_attempt }) {
    const row = this.find(token, false)[1];
    row.token = null;
    row.visible = this.now + (FAULT === 'no-delay' ? 0 : delay_ms);
    if (ignore_attempt) row.attempts -= 1;
  }

  cancel({ items }) {
    return items.filter((item) => this.rows.delete(item));
  }

  completions() {
    return this.done;
  }

  advance({ ms }) {
    this.now += ms;
  }

  fail_next({ which, after_effect }) {
    this.failing[which] = after_effect ? 'after' : 'before';
  }

  close() {}
}

// One call, with the fault that was asked for it.
function call(store, name, request) {
  const fault = store.failing[name];
  delete store.failing[name];
  if (fault === 'before') throw new Retryable('failed before it took effect');
  const result = store[name](request);
  if (fault === 'after') throw new Retryable('its response is lost');
  return result ?? null;
}

let store = new Store();
for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  if (request.peeklock) {
    say({ peeklock: 1, name: 'node-store', capabilities: { fault_injection: true } });
    continue;
  }
  const answer = { id: request.id };
  try {
    if (request.call === 'new') store = new Store();
    answer.ok = request.call === 'new' ? null : call(store, request.call, request);
  } catch (error) {
    if (!(error instanceof Permanent || error instanceof Retryable)) throw error;
    answer.error = error instanceof Permanent ? 'permanent' : 'retryable';
    answer.message = error.message;
  }
  say(answer);
}

function say(message) {
  process.stdout.write(JSON.stringify(message) + '\n');
}
