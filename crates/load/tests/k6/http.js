// The functions of the module `k6/http` that the scripts use, for Node.js. As in k6, a call returns when the answer is there: another thread sends the request.

import { MessageChannel, receiveMessageOnPort, Worker } from 'node:worker_threads';

const { port1: port, port2: other } = new MessageChannel();
const signal = new Int32Array(new SharedArrayBuffer(4));
const sender = new Worker(new URL('./sender.js', import.meta.url), { workerData: { port: other, signal }, transferList: [other] });
sender.unref();

function send(requests) {
  Atomics.store(signal, 0, 0);
  port.postMessage(requests);
  Atomics.wait(signal, 0, 0);
  const answers = receiveMessageOnPort(port).message;
  return answers.map(({ status, body }) => ({ status, body, json: () => JSON.parse(body) }));
}

export default {
  request: (method, url, body, params) => send([[method, url, body, params]])[0],
  batch: (requests) => send(requests),
};
