"use strict";
// Reads the specification that the page carries as data. No rule of the protocol stands here: what can happen, what it
// does, what it breaks and in which words it is told are all evaluated from the data.

/** The terms of the table as functions of a step: its state before and after, and what its names stand for. */
function compiled(rows) {
  const terms = [];
  const make = {
    const: value => () => value,
    name: (place, more) => step => step.names[place] + more,
    read: (side, name, place) => step => step.before[side][step.names[name]][place],
    not: a => step => !terms[a](step),
    and: (...parts) => step => parts.every(a => terms[a](step)),
    or: (...parts) => step => parts.some(a => terms[a](step)),
    eq: (a, b) => step => Number(terms[a](step)) === Number(terms[b](step)),
    lt: (a, b) => step => terms[a](step) < terms[b](step),
    add: (a, n) => step => terms[a](step) + n,
    sub: (a, n) => step => Math.max(terms[a](step) - n, 0),
    ite: (a, b, c) => step => terms[terms[a](step) ? b : c](step),
    after: a => step => terms[a]({before: step.after, names: step.names}),
    forall: (side, name, body) => step => step.before[side].every((_, k) => terms[body](naming(step, name, k))),
    exists: (side, name, body) => step => step.before[side].some((_, k) => terms[body](naming(step, name, k))),
  };
  for (const [operator, ...args] of rows) terms.push(make[operator](...args));
  return terms;
}

function naming(step, name, value) {
  const names = step.names.slice();
  names[name] = value;
  return {before: step.before, after: step.after, names};
}

class Spec {
  constructor(data) {
    this.data = data;
    this.terms = compiled(data.terms);
    this.initial = data.initial;
    this.lives = Object.fromEntries(data.lives.map(life => [life.name, life.meaning]));
  }

  holds(term, state, w = 0, i = 0, t = 0, after = state) {
    return Boolean(this.terms[term]({before: state, after, names: [w, i, t]}));
  }

  /** What can be next: each action that is enabled, for whom, and the state after it. */
  *successors(state) {
    const [workers, items] = state.map(records => records.map((_, k) => k));
    for (const action of this.data.actions)
      for (const w of action.hasWorker ? workers : [0])
        for (const i of action.hasItem ? items : [0])
          if (action.guards.every(g => this.holds(g, state, w, i)))
            yield {action, w, i, before: state, after: this.taken(action, state, w, i)};
  }

  /** The steps that can be next, each told: those of each worker, then the orchestrator's, then those of time. */
  moves(state) {
    const rank = move => (move.action.hasWorker ? move.w : state[0].length);
    return [...this.successors(state)]
      .map((step, k) => [this.move(step), k])
      .sort(([a, j], [b, k]) => rank(a) - rank(b)
        || (a.action.hasWorker ? 0 : Number(a.who > b.who) - Number(a.who < b.who)) || j - k)
      .map(([move]) => move);
  }

  /** A shortest way from a state to a step that breaks a promise; null where so many states show none. */
  wayToBreak(state, id, most = this.data.mostSearched) {
    const p = this.data.promises.findIndex(promise => promise.id === id);
    const cameBy = new Map([[JSON.stringify(state), null]]);
    for (const key of cameBy.keys()) { // what is added meanwhile comes last
      if (cameBy.size > most) break;
      for (const step of this.successors(JSON.parse(key))) {
        if (this.falsePart(p, step) >= 0) {
          const way = [step];
          for (let by = cameBy.get(key); by; by = cameBy.get(JSON.stringify(by.before))) way.unshift(by);
          return way.map(taken => this.move(taken));
        }
        const later = JSON.stringify(step.after);
        if (!cameBy.has(later)) cameBy.set(later, step);
      }
    }
    return null;
  }

  move(step) {
    const {action, w, i, before: state, after} = step;
    const said = sayings => this.said(sayings, state, after, w, i);
    const cause = action.causes.find(([, , enough]) => this.holds(enough, state, w, i)) || action.causes.at(-1);
    return {
      action, w, i, after,
      step: `${action.code}.${action.hasWorker ? w + 1 : 0}.${action.hasItem ? i + 1 : 0}`,
      who: action.hasWorker ? `worker ${this.data.workers[w]}` : action.who,
      does: said(action.does).join(""),
      answer: said(action.answer).join(""),
      truth: action.hasItem ? said(this.data.truth) : [],
      belief: action.hasWorker ? said(action.belief) : [],
      faults: cause ? cause[0] : [],
      note: cause ? cause[1] : "",
      breaks: this.broken(step),
    };
  }

  taken(action, state, w, i) {
    const step = {before: state, after: state, names: [w, i, 0]};
    return state.map((records, side) => {
      const writes = action.writes[side];
      if (!writes.length) return records;
      const record = records[side ? i : w].slice();
      for (const [place, term] of writes) record[place] = Number(this.terms[term](step));
      return records.map((old, k) => (k === (side ? i : w) ? record : old));
    });
  }

  /** The promises that a step breaks, each with the first part of it that is false. */
  broken(step) {
    return this.data.promises.flatMap(({id, text, parts}, p) => {
      const part = this.falsePart(p, step);
      return part < 0 ? [] : [{id, text, part: parts[part].text}];
    });
  }

  /** Which part of a promise a step breaks: one about steps first, then one about states that was true; -1 for none. */
  falsePart(p, {action, w, i, before, after}) {
    const asked = action.asks.find(([promise, , term]) => promise === p && !this.holds(term, before, w, i));
    if (asked) return asked[1];
    return this.data.promises[p].parts.findIndex(
      ({state: term}) => term !== null && this.holds(term, before) && !this.holds(term, after));
  }

  /** The words of every saying whose condition holds, filled. */
  said(sayings, before, after, w, i) {
    const step = {before, after, names: [w, i, 0]};
    return sayings
      .filter(([, when]) => this.terms[when](step))
      .map(([words]) => words.replace(/\{(\w+)\}/g, (_, hole) => this.filling(this.data.holes[hole], step)));
  }

  filling({kind, term}, step) {
    const value = this.terms[term](step), i = step.names[1];
    return kind === "item" ? this.data.items[i] : kind === "token" ? this.data.tokens[i][value] : String(value);
  }

  // Where things stand

  described(side, state, k) {
    return this.said(this.data.describe[side], state, state, side ? 0 : k, side ? k : 0).join("");
  }

  number(state, side, k, variable) {
    return state[side][k][this.data.places[variable]];
  }

  /** What is remembered of a worker or an item beside that, as [name, meaning, words]. */
  details(side, state, k, kind) {
    return this.data.variables[side].flatMap((variable, place) => {
      const value = state[side][k][place];
      if (variable.kind !== kind || variable.isTold || value === this.initial[side][0][place]) return [];
      if (variable.isSwitch) return [[variable.name, variable.meaning, ""]];
      return variable.words.length ? [[variable.name, variable.meaning, variable.words[value]]] : [];
    });
  }

  /** What a delivery is in truth. */
  life(state, i, t) {
    return this.data.lives.find(life => this.holds(life.is, state, 0, i, t)).name;
  }

  /** The delivery that a worker has in hand, as [item, token]; null for none. */
  inHand(state, w) {
    const item = this.number(state, 0, w, "working_on");
    return item ? [item - 1, this.number(state, 0, w, "token")] : null;
  }
}
