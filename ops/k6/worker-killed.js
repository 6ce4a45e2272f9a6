// Workers that claim jobs and send nothing more, as after SIGKILL: their jobs run again, and everything ends.
// The summary shows `recovery_beyond_lease`: the time from the start of a lost attempt until the next one, minus the lease.

import { check, sleep } from 'k6';
import exec from 'k6/execution';
import { Trend } from 'k6/metrics';

import { attemptsOf, checkNumbers, claim, createJob, finishAll, newRun, optionsWith, phase, register, seconds, Worker, workers } from './lib/milepost.js';

const LEASE_MS = 3000;
const recovery = new Trend('recovery_beyond_lease', true);

export const options = optionsWith({
  scenarios: {
    lose: { executor: 'constant-vus', exec: 'lose', vus: 1, duration: `${seconds}s` },
    work: workers,
  },
});

export function setup() {
  return newRun();
}

export function create(run) {
  createJob(run, String(exec.scenario.iterationInTest), {});
}

let worker;

export function work(run) {
  worker = worker || new Worker(run);
  worker.step(1000);
}

let claimed = 0;

export function lose(run) {
  const now = phase(run);
  // On a slow machine, the other workers can be faster until the phase has passed.
  if (now === 'during' || (now === 'after' && claimed === 0)) {
    claimed += (claim(run, register(run, LEASE_MS), 1, 10, 1000) || []).length;
  }
  sleep(1);
}

export function teardown(run) {
  const jobs = finishAll(run);
  checkNumbers(jobs);
  let lost = 0;
  for (const job of jobs.filter((each) => each.attempt > 1)) {
    const attempts = attemptsOf(job);
    attempts.slice(1).forEach((next, index) => {
      if (attempts[index].error_code !== 'lease_lost') return;
      lost += 1;
      recovery.add(Date.parse(next.started_at) - Date.parse(attempts[index].started_at) - LEASE_MS);
    });
  }
  check(jobs, {
    'every job has succeeded': (all) => all.every((job) => job.state === 'succeeded'),
    'some attempts were lost': () => lost > 0,
  });
}
