// Many clients create a job with the same key at the same time: exactly one job, which all answers name.

import { check } from 'k6';
import exec from 'k6/execution';

import { createTogether, finishAll, newRun, optionsWith, phase } from './lib/milepost.js';

/** The number of requests for each key in the second third of the run. */
const TOGETHER = 8;

export const options = optionsWith({});

export function setup() {
  return newRun();
}

export function create(run) {
  const number = exec.scenario.iterationInTest;
  const inHeader = number % 2 === 1;
  const answers = createTogether(run, String(number), phase(run) === 'during' ? TOGETHER : 1, inHeader);
  const passed = answers.filter((answer) => answer.status === 200 || answer.status === 201);
  check(passed, {
    'every create is answered': (all) => all.length === answers.length,
    'all answers name one job': (all) => new Set(all.map((answer) => answer.json().id)).size === 1,
    'one answer reports a new job': (all) => all.filter((answer) => !answer.json().duplicate).length === 1,
  });
}

export function teardown(run) {
  const jobs = finishAll(run);
  // The server makes the key of a job from the header: idempotency:KEY:INDEX.
  const keys = jobs.map((job) => Number(job.key.replace(/^idempotency:(\d+):0$/, '$1'))).sort((a, b) => a - b);
  check(keys, { 'there is exactly one job for each key': (all) => all.length > 0 && all.every((key, index) => key === index) });
}
