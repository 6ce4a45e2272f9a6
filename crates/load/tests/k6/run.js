// Runs a script: `node run.js SCRIPT`. All scenarios take turns in one thread until the time of the run has passed; iterations of `create` have the rate of
// the script. Prints the number of passed checks, and each check that failed.

import exec from 'k6/execution';
import { result, sleep } from 'k6';

globalThis.__ENV = process.env;
globalThis.__VU = 1;

const script = await import(new URL(process.argv[2], `file://${process.cwd()}/`));
const { scenarios, thresholds } = script.options;
for (const [name, { exec: run, executor, duration }] of Object.entries(scenarios)) {
  const isKnown = ['constant-arrival-rate', 'constant-vus'].includes(executor) && /^\d+s$/.test(duration);
  if (typeof script[run] !== 'function' || !isKnown) throw new TypeError(`the scenario ${name} is not valid`);
}
if (thresholds.checks[0] !== 'rate==1') throw new TypeError('failed checks would not fail the script');

const data = script.setup();
const { rate, duration } = scenarios.create;
const end = Date.now() + parseInt(duration, 10) * 1000;
for (let next = Date.now(); Date.now() < end;) {
  for (; next <= Date.now(); next += 1000 / rate) {
    script.create(data);
    exec.scenario.iterationInTest += 1;
  }
  for (const [name, scenario] of Object.entries(scenarios)) if (name !== 'create') script[scenario.exec](data);
  sleep(Math.max(next - Date.now(), 0) / 1000);
}
script.teardown(data);
console.log(JSON.stringify({ passed: result.passed, failed: result.failed, creates: exec.scenario.iterationInTest }));
process.exit(result.failed.length === 0 ? 0 : 1);
