"use strict";
// What the reader sees, and the keys. Every text comes from the data and is set as text, never as markup.

const at = id => document.getElementById(id);

/** An element with attributes and what is inside it; null and "" are left out. */
function make(tag, attributes = {}, ...inside) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "onclick") made.addEventListener("click", value);
    else if (value !== null && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...inside.flat().filter(part => part !== null && part !== ""));
  return made;
}

const chip = (kind, text, title = null) => make("span", {class: `chip ${kind}`, title}, text);
const paragraphs = (texts, kind) => texts.map(text => make("p", {class: kind}, text));

/** The position that the address asks for. */
function address() {
  const hash = location.hash.slice(1);
  try {
    return decodeURIComponent(hash);
  } catch {
    return hash; // no position either
  }
}

class Page {
  constructor(data) {
    this.spec = new Spec(data);
    this.walk = new Walk(this.spec);
    this.runs = data.runs;
    this.life = at("life").content.firstElementChild;
    this.typed = "";
    this.shown = null;
    this.said = "";
  }

  start() {
    const asked = address(), note = asked ? this.goTo(asked) : "";
    if (this.walk.path.length === 1 && this.runs.length) this.load(this.runs[0], note);
    else this.note(note);
    this.draw();
    addEventListener("hashchange", () => this.followLink());
    document.addEventListener("keydown", event => this.key(event));
    for (const [id, action] of Object.entries(this.actions())) at(id).addEventListener("click", action);
    at("file").addEventListener("change", event => this.read(event.target.files[0]));
  }

  actions() {
    return {
      restart: () => this.go(0), back: () => this.go(this.walk.at - 1), forward: () => this.go(this.walk.at + 1),
      end: () => this.go(this.walk.path.length - 1), open: () => at("file").click(),
      text: () => this.showText(), help: () => at("keys").showModal(), copy: () => this.copy(),
    };
  }

  // Going from place to place

  take(move) {
    this.walk.take(move);
    this.arrived();
  }

  go(place) {
    this.walk.go(place);
    this.arrived();
  }

  arrived() {
    this.note("");
    const before = document.activeElement;
    const wasChoosing = before === document.body || before.closest("#next") !== null;
    this.draw();
    location.hash = this.walk.position();
    if (wasChoosing) this.focusChoice();
    const {moves} = this, last = this.walk.taken.at(-1);
    const where = last ? [`Step ${this.walk.at}: ${stepText(last)}`, ...last.truth].join("; ") : "The start";
    at("said").textContent = `${where}. ${many(moves.length, "step")} can be next.`;
  }

  /** Goes to a position, along a run of the page where one leads there. */
  goTo(position) {
    const run = this.runs.find(known => `${known.position}/`.startsWith(`${position}/`));
    if (!run) return this.walk.goTo(position);
    const note = this.walk.goTo(run.position, run.note);
    this.walk.go(position.split("/").length - 1);
    return note;
  }

  followLink() {
    const asked = address();
    if (asked === this.walk.position() || (!asked && this.walk.at === 0)) return;
    const whole = this.walk.position(this.walk.path.slice(1).map(place => place.move));
    if (!asked) this.walk.go(0);
    else if (`${whole}/`.startsWith(`${asked}/`)) this.walk.go(asked.split("/").length - 1);
    else this.note(this.goTo(asked));
    this.draw();
  }

  load(run, before = "") {
    const note = this.walk.goTo(run.position, run.note);
    this.walk.go(0);
    const steps = this.walk.path.length - 1;
    const how = `${run.title}: ${many(steps, "step")}. Forward (→) follows it; leave it where you like.`;
    this.note([before, note, how].filter(text => text).join(" "));
    this.draw();
  }

  async read(file) {
    if (!file) return;
    at("file").value = "";
    try {
      const data = JSON.parse(await file.text());
      const runs = (data.walks || data.broken || []).map(({position, note = ""}, k, {length}) =>
        ({title: length > 1 ? `${file.name}, walk ${k + 1}` : file.name, position, note}));
      if (!runs.length || runs.some(run => typeof run.position !== "string")) throw new Error("no position in it");
      this.runs.push(...runs);
      this.load(runs[0]);
    } catch (error) {
      this.note(`${file.name} is no walk (${error.message}). A walk is what “peeklock explore --json” or `
        + "“peeklock explain --json” prints; for a recorded run: “peeklock explore --load FILE --html PAGE”.");
    }
  }

  note(text) {
    this.said = text;
    this.drawNote();
  }

  // Drawing

  draw() {
    const {walk} = this;
    this.moves = walk.moves;
    this.typed = "";
    const steps = walk.path.length - 1;
    at("place").textContent = steps > walk.at ? `step ${walk.at} of ${steps}` : `step ${walk.at}`;
    for (const id of ["restart", "back"]) at(id).disabled = walk.at === 0;
    for (const id of ["forward", "end"]) at(id).disabled = walk.at === steps;
    at("runs").replaceChildren(...this.runs.map(run => make("button", {onclick: () => this.load(run)}, run.title)));
    at("runs").parentElement.hidden = this.runs.length < 2;
    this.drawNote();
    this.drawBroken();
    this.drawChoices();
    const {deliveries} = walk;
    this.drawStanding(deliveries);
    at("lives").replaceChildren(...this.deliveryCards(deliveries));
    at("promises").replaceChildren(...this.promiseChips());
    this.drawPromise();
    this.drawWalk();
  }

  /** What was said last, and what there is to say of the run as long as it is followed. */
  drawNote() {
    const texts = [this.said, this.walk.note].filter(text => text);
    at("note").replaceChildren(...paragraphs(texts));
    at("note").hidden = !texts.length;
  }

  drawBroken() {
    const {broken} = this.walk;
    at("broken").replaceChildren(...broken.map(({id, text, part, step}) => make("div", {},
      make("p", {class: "what"}, `✗ ${id} is broken at step ${step}, where this is false: “${part}”.`),
      make("p", {class: "promise"}, `${id}: ${text}`))));
    at("broken").hidden = broken.length === 0;
  }

  drawChoices() {
    const expected = this.walk.path[this.walk.at + 1];
    const groups = new Map();
    this.moves.forEach((move, k) => groups.set(move.who, [...(groups.get(move.who) || []), [move, k]]));
    at("next").replaceChildren(...[...groups].map(([who, moves]) => make("div", {class: "group"},
      make("h3", {}, who),
      make("ol", {}, moves.map(([move, k]) => make("li", {}, this.choice(move, k, expected)))))));
    if (!this.moves.length) at("next").replaceChildren(make("p", {class: "faint"}, "Nothing can happen any more."));
  }

  choice(move, k, expected) {
    const follows = expected && expected.move.step === move.step;
    const kinds = ["choice", follows && "follows", move.breaks.length && "breaks"].filter(kind => kind).join(" ");
    return make("button", {class: kinds, onclick: () => this.take(move), title: move.action.sentence},
      make("kbd", {"aria-hidden": "true"}, String(k + 1)),
      make("span", {class: "words"},
        make("span", {},
          make("span", {class: "does"}, move.does),
          move.answer ? make("span", {class: "answer"}, move.answer) : null,
          move.note ? make("span", {class: "note"}, ` (${move.note})`) : null),
        move.faults.map(name => chip("fault", name, this.spec.data.faults[name])),
        move.breaks.map(({id, part}) => chip("wrong", `✗ breaks ${id}`, part)),
        follows ? chip("follow", "the run goes on here") : null));
  }

  drawStanding(deliveries) {
    const {spec, walk: {state}} = this;
    const workers = spec.data.workers.map((_, w) => this.workerRow(beliefOf(this.walk, w)));
    const items = spec.data.items.map((item, i) => make("div", {class: "row item"},
      make("div", {class: "believed", "data-side": "believed"}, make("b", {}, item),
        deliveries.filter(delivery => delivery.item === i).flatMap(({verdicts}) => verdicts)
          .map(({who, counts}) => make("p", {}, `${who} counted: ${counts}`))),
      make("div", {class: "true", "data-side": "true"}, make("p", {}, spec.described(1, state, i)),
        make("p", {}, spec.details(1, state, i, "history").map(([name, meaning]) => chip("", name, meaning))))));
    at("standing").replaceChildren(
      make("div", {class: "row heads", "aria-hidden": "true"}, make("div", {}, "believed"), make("div", {}, "true")),
      ...workers, ...items, this.legend());
  }

  /** What the words mean that stand beside workers and items. */
  legend() {
    const {spec, walk: {state}} = this;
    const details = [["belief", 0], ["history", 1]].flatMap(([kind, side]) =>
      state[side].flatMap((_, k) => spec.details(side, state, k, kind)));
    return make("dl", {class: "legend"}, [...new Map(details)].flatMap(([name, meaning]) =>
      [make("dt", {}, name), make("dd", {}, meaning)]));
  }

  workerRow({who, believes, details, token, item, life, differs}) {
    const held = token ? `${token} of ${item} in hand` : null;
    const truth = !life ? [make("p", {class: "faint"}, "no delivery in its hand")] : [
      make("p", {}, differs ? make("span", {class: "differs", title: "otherwise than the worker believes"}, "≠ ")
        : make("span", {class: "agrees", title: "as the worker believes"}, "= "),
      make("b", {}, `${token} is ${lower(life)}`)),
      make("p", {class: "faint"}, this.spec.lives[life])];
    return make("div", {class: `row worker${differs ? " apart" : ""}`},
      make("div", {class: "believed", "data-side": "believed"},
        make("p", {}, make("b", {}, who), ` ${believes}`),
        make("p", {}, held ? chip("hand", held) : "",
          details.map(([name, meaning, words]) => chip("", words ? `${name}: ${words}` : name, meaning)))),
      make("div", {class: "true", "data-side": "true"}, truth));
  }

  deliveryCards(deliveries) {
    const {data} = this.spec;
    if (!deliveries.length) return [make("p", {class: "faint"}, "Nothing was fetched yet.")];
    return deliveries.reverse().map(({name, lives, holders, verdicts}) => {
      const life = lives.at(-1), drawing = this.life.cloneNode(true);
      drawing.querySelector("title").textContent = `${name}: ${lives.map(lower).join(", then ")}`;
      for (const past of lives) drawing.querySelector(`[data-life="${past}"]`).classList.add("was");
      drawing.querySelector(`[data-life="${life}"]`).classList.add("lit");
      ["", ...lives].slice(0, -1).forEach((from, k) => {
        const move = drawing.querySelector(`[data-move="${from}-${lives[k]}"]`);
        if (move) move.classList.add("was");
      });
      return make("figure", {},
        make("figcaption", {}, make("b", {}, name), " is ", make("b", {}, lower(life)),
          make("span", {class: "faint"}, `: ${this.spec.lives[life]}`)),
        drawing,
        make("p", {}, holders.map(w => chip("hand", `in the hand of worker ${w}`)), verdicts.map(({who, counts}) =>
          chip(saysOtherwise(this.spec, counts, life) ? "wrong" : "", `${who} counted: ${counts}`,
            `that means ${data.allowedBy[counts].map(lower).join(" or ")}`))));
    });
  }

  promiseChips() {
    const broken = new Map(this.walk.broken.map(b => [b.id, b.step]));
    const near = new Set(this.moves.flatMap(move => move.breaks.map(b => b.id)));
    return this.spec.data.promises.map(({id, text}) => {
      const [kind, mark, says] = broken.has(id) ? ["wrong", "✗ ", `broken at step ${broken.get(id)}`]
        : near.has(id) ? ["fault", "! ", "a next step would break it"] : ["", "", "not broken"];
      return make("button", {
        class: `chip ${kind}`, title: text, "aria-label": `${id}, ${says}: ${text}`,
        "aria-expanded": String(this.shown === id),
        onclick: () => this.show(id),
      }, `${mark}${id}`);
    });
  }

  show(id) {
    this.shown = this.shown === id ? null : id;
    this.draw();
    at("promises").querySelector(`[aria-label^="${id},"]`).focus();
  }

  drawPromise() {
    const promise = this.spec.data.promises.find(({id}) => id === this.shown);
    at("promise").hidden = !promise;
    if (!promise) return;
    const breaking = this.moves.map((move, k) => [move, k]).filter(([m]) => m.breaks.some(b => b.id === promise.id));
    at("promise").replaceChildren(
      make("p", {}, make("b", {}, promise.id), ` ${promise.text}`),
      make("ul", {}, promise.parts.map(({text}) => make("li", {}, text))),
      ...breaking.map(([move, k]) =>
        make("p", {class: "what"}, `✗ choice ${k + 1} would break it: ${stepText(move)}`)),
      make("button", {onclick: () => this.leadToBreak(promise.id)}, "Look for the nearest way to break it"));
  }

  leadToBreak(id) {
    const way = this.spec.wayToBreak(this.walk.state, id);
    if (way) this.walk.lead(way);
    this.draw();
    this.note(way
      ? `${id} can be broken in ${many(way.length, "step")} from here. Forward (→) takes them.`
      : `Nothing breaks ${id} within ${this.spec.data.mostSearched} states from here.`);
  }

  drawWalk() {
    const {walk} = this, moves = walk.path.slice(1).map(place => place.move);
    const lanes = this.spec.data.workers.map(name => `worker ${name}`).filter(who => moves.some(m => m.who === who));
    const head = make("tr", {}, ["", ...lanes, "store", "truth"].map((lane, k) =>
      make("th", {scope: "col", class: k ? "lane" : null}, lane)));
    const rows = moves.map((move, k) => this.walkRow(move, k + 1, lanes));
    at("walk").replaceChildren(moves.length
      ? make("table", {}, make("thead", {}, head), make("tbody", {}, rows))
      : make("p", {class: "faint"}, "Nothing has happened yet. Choose a step."));
    const box = at("walk"), row = box.querySelector(".chosen");
    if (row) box.scrollTop = row.offsetTop + row.offsetHeight - box.clientHeight + 8;
    else box.scrollTop = 0;
  }

  walkRow(move, number, lanes) {
    const {walk} = this, wrong = move.breaks.length > 0;
    const store = [move.answer ? make("p", {class: "answer"}, move.answer,
      move.note ? make("span", {class: "note"}, ` (${move.note})`) : null) : null,
    ...move.faults.map(name => make("p", {}, chip("fault", name)))];
    const cells = Object.fromEntries(lanes.map(lane => [lane, []]));
    const believes = paragraphs(move.belief.map(text => `it ${text}`), "belief");
    if (move.who in cells) cells[move.who].push(make("p", {}, move.does), ...believes);
    else store.unshift(make("p", {}, `${move.who}: ${move.does}`));
    const marks = paragraphs(move.breaks.map(({id}) => `✗ this step breaks ${id}`), "mark");
    const truth = [...paragraphs(move.truth), ...marks];
    const kinds = [wrong ? "wrong" : "step", number > walk.at && "to-come", number === walk.at && "chosen"];
    return make("tr", {class: kinds.filter(kind => kind).join(" "), "aria-current": number === walk.at ? "step" : null,
      onclick: () => this.go(number)},
    make("td", {class: "number"}, make("button", {"aria-label": `go to step ${number}: ${stepText(move)}`},
      `${wrong ? "✗ " : ""}${number}`)),
    ...Object.entries(cells).map(([lane, cell]) => make("td", {class: "lane does", "data-lane": lane}, cell)),
    make("td", {class: "lane store", "data-lane": "store"}, store),
    make("td", {class: "lane truth", "data-lane": "truth"}, truth));
  }

  // Text

  showText() {
    at("summary").value = summary(this.walk) + `link: ${location.href.split("#")[0]}#${this.walk.position()}\n`;
    at("copied").textContent = "";
    at("texts").showModal();
    at("summary").select();
  }

  async copy() {
    at("summary").select();
    try {
      await navigator.clipboard.writeText(at("summary").value);
      at("copied").textContent = "Copied.";
    } catch {
      at("copied").textContent = "Selected: copy it with Ctrl+C.";
    }
  }

  // Keys

  get choices() { return [...document.querySelectorAll("#next .choice")]; }

  focusChoice() {
    const follows = document.querySelector("#next .follows");
    (follows || this.choices[0] || document.body).focus({preventScroll: true});
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    const actions = this.actions(), {choices} = this;
    const shift = by => {
      const now = choices.indexOf(document.activeElement);
      const next = choices[now < 0 ? 0 : Math.min(Math.max(now + by, 0), choices.length - 1)];
      if (next) next.focus();
    };
    const keys = {
      ArrowDown: () => shift(1), ArrowUp: () => shift(-1), ArrowRight: actions.forward, ArrowLeft: actions.back,
      Backspace: actions.back, Home: actions.restart, End: actions.end,
      "?": actions.help, t: actions.text, o: actions.open,
      p: () => at("promises").querySelector("button").focus(),
    };
    if (/^\d$/.test(event.key)) this.digit(event.key);
    else if (keys[event.key]) keys[event.key]();
    else {
      if (event.key !== "Enter") this.typed = "";
      return;
    }
    if (!/^\d$/.test(event.key)) this.typed = "";
    event.preventDefault();
  }

  /** A number is taken at once when no other number begins with it; else it is chosen, and Enter takes it. */
  digit(digit) {
    const {moves} = this;
    const number = Number(this.typed + digit) <= moves.length ? Number(this.typed + digit) : Number(digit);
    if (number < 1 || number > moves.length) return;
    if (number * 10 > moves.length) this.take(moves[number - 1]);
    else {
      this.typed = String(number);
      this.choices[number - 1].focus();
    }
  }
}

const page = new Page(JSON.parse(at("data").textContent));
page.start();
