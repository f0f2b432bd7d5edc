"use strict";
// A walk: the steps taken from the initial state, the place in it where the reader stands, and both as a text.

class Walk {
  constructor(spec) {
    this.spec = spec;
    this.path = [{state: spec.initial, move: null}];
    this.at = 0;
    this.note = ""; // what there is to say of the run that is followed, until the walk leaves it
    this.followed = 0; // so many steps that run has
  }

  get state() { return this.path[this.at].state; }
  get taken() { return this.path.slice(1, this.at + 1).map(place => place.move); }
  get moves() { return this.spec.moves(this.state); }

  take(move) {
    const next = this.path[this.at + 1];
    if (!next || next.move.step !== move.step) this.lead([move]);
    this.at += 1;
  }

  /** Let these steps follow from here, instead of what was to follow. */
  lead(moves) {
    this.path.length = this.at + 1;
    for (const move of moves) this.path.push({state: move.after, move});
    if (this.at < this.followed) [this.note, this.followed] = ["", 0];
  }

  go(at) { this.at = Math.min(Math.max(at, 0), this.path.length - 1); }

  /** The place as it stands in a link: what protocol it is of, and the steps. */
  position(steps = this.taken) {
    return [this.spec.data.fingerprint, ...steps.map(move => move.step)].join("/");
  }

  /**
   * Goes to a position as far as its steps can be taken; says what is to be said of that, or nothing.
   * The note is what there is to say of the run to this position, as long as the walk goes through its end.
   */
  goTo(position, note = "") {
    const [of, ...steps] = position.split("/");
    if (!/^[0-9a-f]{8}(\/[0-9a-f]{5}\.\d+\.\d+)*$/.test(position))
      return `“${position.slice(0, 40)}” is no position of a walk.`;
    this.at = 0;
    this.path.length = 1;
    const missing = this.goAlong(of, steps);
    this.followed = this.at;
    this.note = note;
    return missing;
  }

  goAlong(of, steps) {
    for (const [k, step] of steps.entries()) {
      const move = this.moves.find(m => m.step === step);
      if (!move) {
        const why = of === this.spec.data.fingerprint
          ? `step ${k + 1} cannot be taken in this world under policy ${this.spec.data.policy}`
          : `it is of another revision of the protocol (${of}; this is ${this.spec.data.fingerprint})`;
        return `Only ${k} of the ${many(steps.length, "step")} of this link could be taken: ${why}.`;
      }
      this.take(move);
    }
    return of === this.spec.data.fingerprint ? "" : `This link is of another revision of the protocol (${of}; this is `
      + `${this.spec.data.fingerprint}); all of its ${many(steps.length, "step")} can be taken here, too.`;
  }

  /** The promises that were broken on the way, each with the step that broke it. */
  get broken() {
    return this.taken.flatMap((move, k) => move.breaks.map(broken => ({...broken, step: k + 1})));
  }

  /** All deliveries so far: what each is in truth and was before, who has it in hand, and what was counted of it. */
  get deliveries() {
    const {spec, state} = this, found = [];
    for (const [i, item] of spec.data.items.entries())
      for (let t = 1; t <= spec.number(state, 1, i, "issued"); t += 1) {
        const lives = this.path.slice(0, this.at + 1)
          .filter(place => t <= spec.number(place.state, 1, i, "issued"))
          .map(place => spec.life(place.state, i, t));
        const isThis = hand => hand !== null && hand[0] === i && hand[1] === t;
        found.push({
          item: i,
          name: `${spec.data.tokens[i][t]} of ${item}`,
          lives: lives.filter((life, k) => life !== lives[k - 1]),
          holders: spec.data.workers.filter((_, w) => isThis(spec.inHand(state, w))),
          verdicts: this.taken
            .filter((move, k) => move.action.counts && isThis(spec.inHand(this.path[k].state, move.w)))
            .map(move => ({who: move.who, counts: move.action.counts})),
        });
      }
    return found;
  }
}

const many = (number, what) => `${number} ${what}${number === 1 ? "" : "s"}`;
const lower = name => name.toLowerCase();
const saysOtherwise = (spec, counts, life) => !spec.data.allowedBy[counts].includes(life);
const stepText = move => `${move.who}: ${move.does}`
  + (move.answer ? ` → ${move.answer}` : "") + (move.note ? ` (${move.note})` : "")
  + move.faults.map(name => ` ! ${name}`).join("");

/** What a worker believes of what it has in hand, with what of it is otherwise in truth. */
function beliefOf(walk, w) {
  const {spec, state} = walk, hand = spec.inHand(state, w);
  const life = hand && spec.life(state, ...hand);
  return {
    who: `worker ${spec.data.workers[w]}`,
    believes: spec.described(0, state, w),
    details: spec.details(0, state, w, "belief"),
    token: hand && spec.data.tokens[hand[0]][hand[1]],
    item: hand && spec.data.items[hand[0]],
    life,
    differs: hand !== null && life !== spec.data.inHand,
  };
}

/** The place in plain text, to be pasted somewhere. */
function summary(walk) {
  const {spec} = walk, lines = [`policy ${spec.data.policy}; ${spec.data.world}`];
  if (walk.note) lines.push(walk.note);
  lines.push("");
  walk.taken.forEach((move, k) => {
    lines.push(`${String(k + 1).padStart(3)}  ${stepText(move)}`);
    if (move.truth.length) lines.push(`       truth: ${move.truth.join("; ")}`);
    if (move.belief.length) lines.push(`       ${move.who}: ${move.belief.join("; ")}`);
    for (const {id, part} of move.breaks) lines.push(`       ✗ breaks ${id}, where this is false: "${part}"`);
  });
  lines.push(walk.at ? "" : "  nothing has happened yet\n", "now:", ...standing(walk));
  const next = walk.moves.flatMap(move => move.breaks.map(({id}) => `  ✗ ${id}: ${stepText(move)}`));
  if (next.length) lines.push("", "a next step could break:", ...next);
  lines.push("", `position: ${walk.position()}`);
  return lines.join("\n") + "\n";
}

function standing(walk) {
  const {spec, state} = walk, lines = [];
  spec.data.workers.forEach((_, w) => {
    const {who, believes, details, token, item, life, differs} = beliefOf(walk, w);
    const more = details.map(([name, , words]) => (words ? `${name}: ${words}` : name)).join(", ");
    lines.push(`  ${who} ${believes}` + (token ? `; in hand: ${token} of ${item}` : "") + (more ? ` (${more})` : ""));
    if (differs) lines.push(`    ≠ in truth ${token} is ${lower(life)}: ${spec.lives[life]}`);
  });
  spec.data.items.forEach((item, i) => {
    const more = spec.details(1, state, i, "history").map(([name]) => name).join(", ");
    lines.push(`  ${item} is ${spec.described(1, state, i)}` + (more ? ` (${more})` : ""));
  });
  for (const {name, lives, verdicts} of walk.deliveries) {
    const life = lives.at(-1);
    lines.push(`  ${name}: ${lives.map(lower).join(" → ")}`
      + verdicts.map(({who, counts}) => `; ${who} counted: ${counts}`).join(""));
    for (const {counts} of verdicts)
      if (saysOtherwise(spec, counts, life))
        lines.push(`    ≠ ${counts} means ${spec.data.allowedBy[counts].map(lower).join(" or ")}`);
  }
  for (const {id, step} of walk.broken) lines.push(`  ✗ ${id} was broken at step ${step}`);
  return lines;
}
