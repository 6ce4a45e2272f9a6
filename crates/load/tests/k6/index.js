// The functions of the module `k6` that the scripts use, for Node.js.

/** The number of passed checks, and the names of those that failed. */
export const result = { passed: 0, failed: [] };

export function check(value, checks) {
  let all = true;
  for (const [name, holds] of Object.entries(checks)) {
    const kept = Boolean(holds(value));
    if (kept) result.passed += 1;
    else result.failed.push(`${name}: ${JSON.stringify(value).slice(0, 500)}`);
    all &&= kept;
  }
  return all;
}

export function sleep(seconds) {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, seconds * 1000);
}
