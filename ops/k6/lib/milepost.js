// What the scenarios share: requests to a Milepost server, a worker, and the check of what the store contains at the end.

import http from 'k6/http';
import { check, sleep } from 'k6';

const url = (__ENV.MILEPOST_URL || 'http://127.0.0.1:7070').replace(/\/+$/, '');

/** How long jobs are created, and how many per second. The disturbance is in the second third. */
export const seconds = Number(__ENV.SECONDS || 30);
export const rate = Number(__ENV.RATE || 50);

/** How often a request without an answer is repeated, with a pause of a second. */
const REPEATS = 60;
/** The maximum number of jobs in one claim. */
const CLAIM_MAX = 50;
const LEASE_MS = 15000;

function params(tags, headers, token = __ENV.MILEPOST_TOKEN) {
  const authorization = token ? { Authorization: `Bearer ${token}` } : {};
  return { headers: { 'Content-Type': 'application/json', ...authorization, ...headers }, tags: tags || {} };
}

function hasPassed(response) {
  return response.status !== 0 && response.status !== 408 && response.status !== 429 && response.status < 500;
}

/** Sends a request, and repeats it while there is no answer. Safe for creates with a key, claims, ends and reads. */
function ask(method, path, body, tags) {
  const text = body === undefined ? null : JSON.stringify(body);
  const token = path.startsWith('/v1/workers') ? __ENV.MILEPOST_WORKER_TOKEN : __ENV.MILEPOST_TOKEN;
  let response;
  for (let repeat = 0; repeat <= REPEATS; repeat += 1) {
    if (repeat > 0) sleep(1);
    response = http.request(method, url + path, text, params(tags, {}, token));
    if (hasPassed(response)) break;
  }
  return response;
}

/** Returns a new run. Its jobs have a new kind, so other jobs of the store are not touched. */
export function newRun() {
  return { kind: `k6-${Date.now().toString(36)}`, began: Date.now() };
}

/** Returns the phase at this moment: before, during or after. */
export function phase(run) {
  const share = (Date.now() - run.began) / 1000 / seconds;
  return share < 1 / 3 ? 'before' : share < 2 / 3 ? 'during' : 'after';
}

/** The options of a scenario. `more`: further scenarios beside the creates, and thresholds. */
export function optionsWith(more) {
  const shown = ['before', 'during', 'after'].map((name) => [`http_req_duration{phase:${name}}`, ['max>=0']]);
  return {
    scenarios: {
      create: { executor: 'constant-arrival-rate', exec: 'create', rate, timeUnit: '1s', duration: `${seconds}s`, preAllocatedVUs: 20, maxVUs: 200 },
      ...more.scenarios,
    },
    // A threshold that always holds shows the latencies of each phase in the summary.
    thresholds: { checks: ['rate==1'], ...Object.fromEntries(shown), ...more.thresholds },
    teardownTimeout: '10m',
    batch: 20,
    batchPerHost: 20,
  };
}

/** Workers of the script. They run longer than jobs are created; `finishAll` runs the rest. */
export const workers = { executor: 'constant-vus', exec: 'work', vus: 2, duration: `${seconds + 10}s` };

/** Creates a job with a key. Returns the answer. */
export function createJob(run, key, payload, more) {
  const response = ask('POST', '/v1/jobs', { kind: run.kind, key, payload, ...more }, { phase: phase(run) });
  check(response, { 'a create is answered': (its) => (its.status === 201 || its.status === 200) && typeof its.json().id === 'string' });
  return response;
}

/** Creates the same job by many requests at the same time. `inHeader`: the key is in the header `Idempotency-Key`. Returns the answers. */
export function createTogether(run, key, requests, inHeader) {
  const body = JSON.stringify({ kind: run.kind, payload: { key }, ...(inHeader ? {} : { key }) });
  const one = ['POST', `${url}/v1/jobs`, body, params({ phase: phase(run) }, inHeader ? { 'Idempotency-Key': key } : {})];
  return http.batch(Array(requests).fill(one));
}

/** Registers a worker for the jobs of a run. Returns its id. */
export function register(run, leaseMs) {
  const response = ask('POST', '/v1/workers', { name: `k6-${__VU}`, queues: ['default'], kinds: [run.kind], lease_ms: leaseMs || LEASE_MS });
  check(response, { 'a worker is registered': (its) => its.status === 201 && its.json().id !== undefined });
  return response.json().id;
}

/** Claims jobs. Returns none if the worker is unknown, so register again. */
export function claim(run, worker, claimId, limit, waitMs) {
  const body = { queues: ['default'], kinds: [run.kind], limit, wait_ms: waitMs, claim_id: claimId };
  const response = ask('POST', `/v1/workers/${worker}/claim`, body);
  check(response, { 'a claim is answered': (its) => its.status === 200 || its.status === 409 });
  return response.status === 200 ? response.json().jobs : undefined;
}

/** A worker that fails and succeeds as the payload of each job asks: `failures` attempts fail, then it succeeds, or is `refused`. */
export class Worker {
  constructor(run) {
    this.run = run;
    this.id = undefined;
    this.claims = 0;
    this.renewed = 0;
  }

  /** Claims jobs, and ends them. Returns their number. */
  step(waitMs) {
    if (this.id === undefined) {
      this.id = register(this.run);
      this.renewed = Date.now();
    }
    if (Date.now() - this.renewed > LEASE_MS / 3) {
      ask('POST', `/v1/workers/${this.id}/heartbeat`, {});
      this.renewed = Date.now();
    }
    this.claims += 1;
    const jobs = claim(this.run, this.id, this.claims, CLAIM_MAX, waitMs);
    if (jobs === undefined) {
      this.id = undefined;
      return 0;
    }
    if (jobs.length > 0) this.finish(jobs);
    return jobs.length;
  }

  finish(jobs) {
    const response = ask('POST', `/v1/workers/${this.id}/finish`, { runs: jobs.map(ended) });
    check(response, {
      'every end is stored': (its) => its.status === 200 && its.json().runs.every((told) => told === 'accepted' || told === 'repeated'),
    });
  }
}

function ended(job) {
  const { failures = 0, refused = false } = job.payload || {};
  if (job.attempt <= failures) return { run: job.run, outcome: 'failed', error_code: 'planned', message: 'it fails as planned' };
  if (refused) return { run: job.run, outcome: 'failed', error_code: 'refused', message: 'it is refused as planned', retryable: false };
  return { run: job.run, outcome: 'succeeded', result: { attempt: job.attempt } };
}

/** Returns all jobs of a run, as the server lists them. */
export function jobsOf(run) {
  const jobs = [];
  let cursor = '';
  do {
    const page = ask('GET', `/v1/jobs?kind=${run.kind}&limit=1000${cursor}`).json();
    jobs.push(...page.items);
    cursor = page.next_cursor ? `&cursor=${page.next_cursor}` : '';
  } while (cursor !== '');
  return jobs;
}

/** Returns the attempts of a job. */
export function attemptsOf(job) {
  return ask('GET', `/v1/jobs/${job.id}/attempts`).json();
}

/** Runs all jobs that have not ended. Returns all jobs. */
export function finishAll(run) {
  const worker = new Worker(run);
  const open = ['blocked', 'pending', 'running', 'retry_wait'];
  for (let round = 0; round < 300; round += 1) {
    worker.step(1000);
    const jobs = jobsOf(run);
    if (!jobs.some((job) => open.includes(job.state))) return jobs;
  }
  return jobsOf(run);
}

/** Checks that jobs have the keys `0` to `N-1`, each once. A job without one of these keys, or a missing one, fails the check. */
export function checkNumbers(jobs) {
  const numbers = jobs.map((job) => Number(job.key)).sort((a, b) => a - b);
  check(numbers, { 'there is exactly one job for each create': (all) => all.length > 0 && all.every((number, index) => number === index) });
}
