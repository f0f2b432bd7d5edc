// Reads {data, walks: [[position, …], …]} and says of each place what the page's own code makes of it.
const {data, walks} = JSON.parse(require("fs").readFileSync(0, "utf8"));
const spec = new Spec(data);
const numbers = state => state.map(records => records.map(record => record.map(Number)));
const told = walks.map(positions => {
  const walk = new Walk(spec);
  const note = walk.goTo(positions.at(-1));
  const places = positions.map((_, at) => {
    walk.go(at);
    return {
      position: walk.position(),
      state: numbers(walk.state),
      moves: walk.moves.map(m => ({
        step: m.step, sentence: stepText(m), truth: m.truth, belief: m.belief, after: numbers(m.after),
        breaks: m.breaks.map(({id, part}) => [id, part]),
      })),
      summary: summary(walk),
    };
  });
  walk.go(0);
  const ways = Object.fromEntries(data.promises.map(({id}) => {
    const way = spec.wayToBreak(walk.state, id, 500);
    return [id, way && way.map(move => move.step)];
  }));
  return {note, places, ways};
});
process.stdout.write(JSON.stringify(told));
