"""What the page of a tale looks like and how its keys work; it stands in the page itself."""

from __future__ import annotations

STYLE = """
:root {
  color-scheme: light dark;
  --paper: #fbfaf7; --ink: #1d1f21; --faint: #5f6368; --line: #dcd8cf; --panel: #ffffff;
  --wrong: #b3261e; --wrong-paper: #fdecea; --right: #1e6b34; --right-paper: #e9f5ec;
  --fault: #8a5a00; --fault-paper: #fdf3dc; --chosen: #e8eefc; --chosen-edge: #3b5bdb;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #16181b; --ink: #e7e5e0; --faint: #a3a7ad; --line: #34373c; --panel: #1e2125;
    --wrong: #ff8a80; --wrong-paper: #3a1d1c; --right: #8fd6a3; --right-paper: #17301f;
    --fault: #f2c165; --fault-paper: #33290f; --chosen: #222c47; --chosen-edge: #8aa4ff;
  }
}
* { box-sizing: border-box; }
html { scroll-padding: 3rem 0 6rem; }
body {
  margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, "Segoe UI", Roboto, "Helvetica Neue", sans-serif;
}
main { max-width: 78rem; margin: 0 auto; padding: 1.5rem 1.25rem 7rem; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 .75rem; overflow-wrap: anywhere; }
h2 { font-size: 1rem; margin: 0 0 .4rem; }
p { margin: 0 0 .4rem; }
code, pre, td.does, td.store, .states li { font-family: ui-monospace, "Cascadia Code", Menlo, Consolas, monospace; }
.setting, .ms, .note, .names { color: var(--faint); }
.promises { list-style: none; margin: 0 0 .5rem; padding: 0; }
.promises li { display: flex; gap: .6rem; margin-bottom: .2rem; }
.promises b { flex: none; min-width: 2rem; color: var(--wrong); }
.finding {
  background: var(--panel); border: 1px solid var(--line); border-left: 5px solid var(--wrong);
  border-radius: 6px; padding: .9rem 1.1rem; margin: 1rem 0 1.5rem;
  display: flex; flex-wrap: wrap; gap: .9rem 3rem;
}
.finding > .what { flex: 1 0 100%; }
.what p:first-child { color: var(--wrong); font-weight: 600; }
.finding p, .finding li { overflow-wrap: anywhere; }
.finding ul { list-style: none; margin: 0; padding: 0; }
.allowed li {
  display: inline-block; background: var(--right-paper); color: var(--right); border-radius: 4px;
  padding: .1rem .5rem; margin: 0 .3rem .3rem 0;
}
.states ul + p { margin-top: .4rem; color: var(--faint); }
.states li { font-size: .86rem; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
thead th {
  position: sticky; top: 0; background: var(--paper); text-align: left; padding: .4rem .6rem;
  border-bottom: 2px solid var(--line); z-index: 1;
}
td { vertical-align: top; padding: .4rem .6rem; border-bottom: 1px solid var(--line); overflow-wrap: anywhere; }
td.lane, th.lane { border-left: 1px solid var(--line); }
td.does, td.store { font-size: .86rem; }
td.number { white-space: nowrap; color: var(--faint); text-align: right; font-variant-numeric: tabular-nums; }
td.ms { white-space: nowrap; text-align: right; font-variant-numeric: tabular-nums; }
td p { margin: 0; }
td .belief { color: var(--faint); font: italic .86rem system-ui, sans-serif; }
.answer::before { content: "→ "; color: var(--faint); }
.note { font-family: system-ui, sans-serif; }
.fault {
  display: inline-block; font: .78rem ui-monospace, Menlo, Consolas, monospace; background: var(--fault-paper);
  color: var(--fault); border-radius: 4px; padding: 0 .35rem;
}
tr.between td { color: var(--faint); }
tr.wrong td { background: var(--wrong-paper); }
tr.wrong td.number, .mark { color: var(--wrong); font-weight: 700; }
tbody tr { cursor: pointer; scroll-margin: 3.5rem 0 6rem; }
tbody tr:focus { outline: none; }
tbody tr.chosen td { box-shadow: inset 0 1px var(--chosen-edge), inset 0 -1px var(--chosen-edge); }
tbody tr.chosen:not(.wrong) td { background: var(--chosen); }
details { margin-top: 1rem; border: 1px solid var(--line); border-radius: 6px; background: var(--panel); }
summary { cursor: pointer; padding: .5rem .9rem; font-weight: 600; }
pre { margin: 0; padding: .3rem .9rem .9rem; overflow-x: auto; font-size: .82rem; line-height: 1.45; }
.notes { margin-top: 1.25rem; }
.names { font-size: .86rem; }
.names dt { float: left; clear: left; min-width: 4rem; font-weight: 600; }
.names dd { margin: 0 0 .1rem 4.5rem; overflow-wrap: anywhere; }
#now {
  position: fixed; inset: auto 0 0 0; background: var(--panel); border-top: 1px solid var(--line);
  padding: .6rem 1.25rem; display: flex; gap: 1rem; justify-content: space-between; align-items: baseline;
}
#now p { margin: 0; overflow-wrap: anywhere; }
#now .keys { color: var(--faint); white-space: nowrap; font-size: .86rem; }
kbd { border: 1px solid var(--line); border-radius: 3px; padding: 0 .3rem; font-size: .8rem; }
@media (max-width: 46rem) {
  main { padding: 1rem .8rem 8rem; }
  thead { display: none; }
  table, tbody, tr, td { display: block; }
  tr { border-bottom: 1px solid var(--line); padding: .45rem 0 .45rem 3.1rem; position: relative; }
  td, td.lane { border: 0; padding: .05rem 0; }
  td:empty { display: none; }
  td.number { position: absolute; left: .2rem; width: 2.5rem; text-align: right; }
  td.ms { text-align: left; }
  td[data-lane]::before {
    content: attr(data-lane); display: block; color: var(--faint); font: .72rem system-ui, sans-serif;
    text-transform: uppercase; letter-spacing: .04em;
  }
  td.ms::after { content: " ms"; }
  tr.wrong { background: var(--wrong-paper); }
  tr.wrong td { background: none; }
  tbody tr.chosen { outline: 2px solid var(--chosen-edge); outline-offset: -1px; border-radius: 4px; }
  tbody tr.chosen td { box-shadow: none; }
  tbody tr.chosen:not(.wrong) { background: var(--chosen); }
  tbody tr.chosen:not(.wrong) td { background: none; }
  #now { padding: .5rem .8rem; }
  #now .keys { display: none; }
}
@media print { #now { display: none; } thead th { position: static; } }
"""

SCRIPT = """
const rows = [...document.querySelectorAll("tbody tr")];
const now = document.querySelector("#now p");
let at = Math.max(rows.findIndex(row => row.classList.contains("wrong")), 0);
function choose(next, focus) {
  rows[at].classList.remove("chosen");
  rows[at].removeAttribute("aria-current");
  at = Math.min(Math.max(next, 0), rows.length - 1);
  const row = rows[at];
  row.classList.add("chosen");
  row.setAttribute("aria-current", "step");
  now.textContent = row.dataset.sentence;
  row.scrollIntoView({block: "nearest"});
  if (focus) row.focus({preventScroll: true});
}
document.querySelector("#now").hidden = false;
document.addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("details")) return;
  const to = {
    j: at + 1, ArrowDown: at + 1, ArrowRight: at + 1, k: at - 1, ArrowUp: at - 1, ArrowLeft: at - 1,
    Home: 0, End: rows.length - 1, x: rows.findIndex(row => row.classList.contains("wrong")),
  }[event.key];
  if (to === undefined || to < 0 && event.key === "x") return;
  event.preventDefault();
  choose(to, true);
});
rows.forEach((row, place) => row.addEventListener("click", () => choose(place, false)));
choose(at, false);
"""
