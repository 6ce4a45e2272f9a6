// Constant load while you slow the database down: nothing is lost. The summary shows the latency of creates by phase.

import { begin } from './lib/steady.js';

export { create, options, teardown, work } from './lib/steady.js';

export function setup() {
  return begin('Slow the database down after a third of it, for example with tc or toxiproxy, and stop that after two thirds.');
}
