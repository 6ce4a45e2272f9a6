// Constant load, while the user of the script disturbs the servers: nothing is lost.

import { check } from 'k6';
import exec from 'k6/execution';

import { checkNumbers, createJob, finishAll, newRun, optionsWith, seconds, Worker, workers } from './milepost.js';

export const options = optionsWith({ scenarios: { work: workers } });

/** Begins a run, and prints what the user has to do in it. */
export function begin(instructions) {
  console.log(`The run takes ${seconds} s. ${instructions}`);
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

export function teardown(run) {
  const jobs = finishAll(run);
  checkNumbers(jobs);
  check(jobs, { 'every job has succeeded': (all) => all.every((job) => job.state === 'succeeded') });
}
