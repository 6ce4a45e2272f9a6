// The metrics of the module `k6/metrics` that the scripts use.

export class Trend {
  constructor(name) {
    this.name = name;
  }

  add(value) {
    if (!Number.isFinite(value)) throw new TypeError(`${this.name}: ${value} is not a number`);
  }
}
