// A whole worker of the policy `retry`, in plain loops, that `peeklock conform worker` drives over JSON lines.
// Node.js and nothing else: node tests/adapters/node/worker.mjs. FAULT in the environment plants a mistake.
import { createInterface } from 'node:readline';

const FAULT = process.env.FAULT ?? '';
const LOCK_MS = 30_000, RENEW_EVERY_MS = 25_000, ACK_WAITS_MS = [100, 200, 400, 800], MAX_ATTEMPTS = 10;
const GRACE_MS = 10_000, SHUTDOWN_GRACE_MS = 1_000, POLL_MS = 1_000, ABANDON_DELAY_MS = 100, FAR_MS = 1e12;

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const say = (message) => process.stdout.write(JSON.stringify(message) + '\n');

class Stopped extends Error {} // the harness has ended the run: this worker is dead
class GraceOver extends Error {} // what is in hand is dropped

class Worker {
  constructor(nowMs) {
    this.nowMs = nowMs;
    this.requests = 0;
    this.stopMs = Infinity; // after a shutdown: when its grace is over
    this.renewMs = FAR_MS; // when the lock is to be renewed
  }

  // One request and its answer: 'ok', 'retryable' or 'permanent', and what an ok carries.
  async ask(call, fields = {}) {
    say({ id: ++this.requests, call, ...fields });
    const answer = JSON.parse((await lines.next()).value);
    if (answer.stop) throw new Stopped(answer.stop);
    this.nowMs = answer.now_ms;
    return { outcome: answer.error ?? 'ok', value: answer.ok };
  }

  // A call of the store, which must not begin when the shutdown's grace is over.
  async settles(call, fields) {
    if (this.nowMs >= this.stopMs) throw new GraceOver();
    return (await this.ask(call, fields)).outcome;
  }

  async pause(untilMs) {
    if (this.nowMs >= this.stopMs) throw new GraceOver();
    const { value } = await this.ask('wait', { until_ms: Math.min(untilMs, this.stopMs) });
    if (value.shutdown && this.stopMs === Infinity) {
      this.stopMs = this.nowMs + SHUTDOWN_GRACE_MS;
      this.renewMs = FAR_MS; // renewing ends
    }
    return value;
  }

  async run() {
    while (this.stopMs === Infinity) {
      const { value: delivery } = await this.ask('fetch', { lock_timeout_ms: LOCK_MS });
      if (delivery) await this.work(delivery);
      else await this.pause(this.nowMs + POLL_MS);
    }
  }

  async work({ token, attempt_count, has_handler }) {
    this.renewMs = this.nowMs + RENEW_EVERY_MS;
    if (attempt_count > MAX_ATTEMPTS) {
      await this.settles('ack', { token, completion: { kind: 'poison', text: 'delivered too often' } });
      await this.ask('count', { metric: 'poison' });
    } else if (!has_handler) {
      await this.ask('no_handler', { token });
      await this.abandon(token, Math.min(60_000, 1_000 * 2 ** (attempt_count - 1)));
    } else {
      const completion = await this.handle(token);
      if (completion) await this.settle(token, completion);
      else if ((await this.settles('ack', { token, completion: null })) !== 'ok') await this.abandon(token);
    }
  }

  // Run the handler under the lock; its completion, or null where a renewal failed.
  async handle(token) {
    await this.ask('start_handler', { token });
    for (;;) {
      if (!(await this.renewed(token))) break;
      const { handler, text } = await this.pause(this.renewMs);
      if (handler) return { kind: handler, text };
    }
    await this.ask('cancel_handler', { token });
    for (const untilMs = this.nowMs + GRACE_MS; this.nowMs < untilMs; ) {
      if ((await this.pause(untilMs)).handler) return null;
    }
    await this.ask('abort_handler', { token });
    return null;
  }

  // Renew if it is time to; false when that failed just now.
  async renewed(token) {
    if (FAULT === 'never-renews') this.renewMs = FAR_MS;
    if (this.nowMs < this.renewMs) return true;
    const ok = (await this.settles('renew', { token, extend_for_ms: LOCK_MS })) === 'ok';
    this.renewMs = ok ? this.nowMs + RENEW_EVERY_MS : FAR_MS;
    return ok;
  }

  async settle(token, completion) {
    for (let attempt = 0; attempt <= ACK_WAITS_MS.length; attempt++) {
      const outcome = await this.settles('ack', { token, completion });
      if (outcome === 'ok') {
        return this.ask('count', { metric: completion.kind === 'result' ? 'success' : completion.kind });
      }
      if (outcome === 'permanent' && attempt > 0 && FAULT !== 'never-uncertain') {
        return this.ask('count', { metric: 'uncertain' }); // an earlier attempt may have committed
      }
      if (outcome === 'permanent' || FAULT === 'acks-once') break;
      if (attempt < ACK_WAITS_MS.length) await this.rest(token, this.nowMs + ACK_WAITS_MS[attempt]);
    }
    await this.ask('count', { metric: 'infrastructure error' });
    return this.abandon(token);
  }

  // Wait between attempts, renewing the lock; an error there only ends the renewing.
  async rest(token, untilMs) {
    for (;;) {
      await this.renewed(token);
      if (this.nowMs >= untilMs) return;
      await this.pause(Math.min(untilMs, this.renewMs));
    }
  }

  abandon(token, delay_ms = ABANDON_DELAY_MS) {
    return this.settles('abandon', { token, delay_ms });
  }
}

for (let line = await lines.next(); !line.done; line = await lines.next()) {
  const message = JSON.parse(line.value);
  if (message.peeklock) {
    say({ peeklock: 1, name: 'node-worker' });
    continue;
  }
  try {
    await new Worker(message.now_ms).run();
  } catch (error) {
    if (!(error instanceof Stopped || error instanceof GraceOver)) throw error;
  }
  say({ done: message.run });
}
