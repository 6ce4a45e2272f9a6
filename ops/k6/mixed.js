// Successes, failures and retries: every job ends as requested, after the right number of attempts.

import { check } from 'k6';
import exec from 'k6/execution';

import { checkNumbers, createJob, finishAll, newRun, optionsWith, Worker, workers } from './lib/milepost.js';

export const options = optionsWith({ scenarios: { work: workers } });

/** Returns the job with this number, and its expected end. */
function planned(number) {
  switch (number % 10) {
    case 0: return { payload: { refused: true }, state: 'failed', attempts: 1 };
    case 1: return { payload: { failures: 2 }, more: { max_attempts: 2 }, state: 'failed', attempts: 2 };
    case 2: case 3: return { payload: { failures: 1 }, state: 'succeeded', attempts: 2 };
    case 4: return { payload: { failures: 2 }, state: 'succeeded', attempts: 3 };
    default: return { payload: {}, state: 'succeeded', attempts: 1 };
  }
}

export function setup() {
  return newRun();
}

export function create(run) {
  const number = exec.scenario.iterationInTest;
  const { payload, more } = planned(number);
  createJob(run, String(number), payload, more);
}

let worker;

export function work(run) {
  worker = worker || new Worker(run);
  worker.step(1000);
}

export function teardown(run) {
  const jobs = finishAll(run);
  checkNumbers(jobs);
  check(jobs, {
    'every job ends as requested': (all) => all.every((job) => job.state === planned(Number(job.key)).state),
    'every job has the right number of attempts': (all) => all.every((job) => job.attempt === planned(Number(job.key)).attempts),
  });
}
