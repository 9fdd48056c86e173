// The process of one runner on Node.js: `node worker.mjs NAME PROTOCOL URL`.
//
// As benchmarks/compare/worker.py: one JSON line for each measurement, one JSON line as
// answer. What the runs did goes along, since who asked checks it.

import { createInterface } from "node:readline";

const [name, protocol, url] = process.argv.slice(2);
const { make } = await import(`./${name}/runner.mjs`);
const runner = await make(protocol, url);
const known = new Map();

function cpu() {
  const { userCPUTime, systemCPUTime } = process.resourceUsage();
  return (userCPUTime + systemCPUTime) / 1e6;
}

async function work(prepared, kind, runs) {
  if (kind === "stream" || kind === "paced") return [await runner.stream(prepared)];
  const begun = Array.from({ length: runs }, () => runner.run(prepared));
  return Promise.all(begun);
}

async function measure({ scenario, times, what }) {
  if (!known.has(scenario)) {
    known.set(scenario, await runner.prepare(what));
    const until = performance.now() + 1000; // compiled while it is used
    while (performance.now() < until) {
      await work(known.get(scenario), what.kind, Math.min(what.runs, 20));
    }
  }
  const done = [];
  const began = performance.now();
  const before = cpu();
  for (let each = 0; each < times; each += 1) {
    done.push(...(await work(known.get(scenario), what.kind, what.runs)));
  }
  const spent = cpu() - before;
  const passed = (performance.now() - began) / 1000;
  const units = times * what.units;
  return {
    cpu: spent / units,
    wall: passed / units,
    peak_mb: process.resourceUsage().maxRSS / 1024,
    done,
  };
}

for await (const line of createInterface({ input: process.stdin })) {
  let answer;
  try {
    answer = await measure(JSON.parse(line));
  } catch (error) {
    console.error(error);
    answer = { left_out: `${error.name}: ${String(error.message).split("\n")[0]}` };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
process.exit(0);
