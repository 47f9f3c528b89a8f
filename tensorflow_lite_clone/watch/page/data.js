// What the server has sent so far.

// kinds: kind -> tag -> run -> series; a series is {steps, times, values, numbers}, a place for
// each record. `numbers` are the records' own: large values are asked for by them.
export const data = {
  folder: "", generation: "", count: 0, newest: 0, problems: [], runs: [], begins: new Map(),
  kinds: new Map(),
};

const values = new Map(); // number of a record -> promise of its value
const KEPT = 400;

function clear(generation) {
  Object.assign(data, { generation, count: 0, newest: 0, runs: [] });
  data.begins.clear();
  data.kinds.clear();
  values.clear();
}

function within(map, key, make) {
  if (!map.has(key)) map.set(key, make());
  return map.get(key);
}

function add([run, kind, tag, step, time, value], number) {
  if (!data.begins.has(run)) data.runs.push(run);
  data.begins.set(run, Math.min(data.begins.get(run) ?? time, time));
  data.newest = Math.max(data.newest, time);
  const runs = within(within(data.kinds, kind, () => new Map()), tag, () => new Map());
  const series = within(runs, run, () => ({ steps: [], times: [], values: [], numbers: [] }));
  series.steps.push(step);
  series.times.push(time);
  series.values.push(kind === "scalar" ? Number(value) : value); // "NaN" and "Infinity", too
  series.numbers.push(number);
}

async function ask(address) {
  const answer = await fetch(address);
  if (!answer.ok) throw new Error(await answer.text());
  return answer.json();
}

// Fetch what is new; whether there is more at once, and whether anything came.
async function fetchNews() {
  const news = await ask(`/news?generation=${data.generation}&since=${data.count}`);
  const fresh = news.generation !== data.generation;
  if (fresh) clear(news.generation);
  news.events.forEach((event, i) => add(event, news.since + i));
  data.count = news.since + news.events.length;
  data.problems = news.problems;
  data.folder = news.folder;
  return { more: news.more, changed: fresh || news.events.length > 0, fresh };
}

// Ask every second; `seen` is called after each answer, `lost` after each failure.
export async function follow(seen, lost) {
  for (;;) {
    let more = false;
    if (!document.hidden) {
      try {
        const news = await fetchNews();
        more = news.more;
        seen(news);
      } catch (error) {
        lost(error);
      }
    }
    if (!more) await new Promise((resolve) => setTimeout(resolve, 1000));
  }
}

// The promise of a large value.
export function load(number) {
  if (!values.has(number)) {
    if (values.size >= KEPT) values.delete(values.keys().next().value);
    const promise = ask(`/value?generation=${data.generation}&number=${number}`);
    values.set(number, promise);
    promise.catch(() => values.delete(number));
  }
  return values.get(number);
}
