// Constant load while you stop Redis and start it again: nothing is lost. The summary shows the latency of creates by phase.

import { begin } from './lib/steady.js';

export { create, options, teardown, work } from './lib/steady.js';

export function setup() {
  return begin('Stop Redis after a third of it, and start Redis after two thirds.');
}
