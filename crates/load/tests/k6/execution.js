// The values of the module `k6/execution` that the scripts use.

export default { scenario: { iterationInTest: 0 } };
