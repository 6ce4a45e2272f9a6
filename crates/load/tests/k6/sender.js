// The thread that sends requests.

import { workerData } from 'node:worker_threads';

const { port, signal } = workerData;

async function answered([method, url, body, params]) {
  try {
    const response = await fetch(url, { method, body: body ?? undefined, headers: params.headers });
    return { status: response.status, body: await response.text() };
  } catch (error) {
    return { status: 0, body: String(error) };
  }
}

port.on('message', async (requests) => {
  port.postMessage(await Promise.all(requests.map(answered)));
  Atomics.store(signal, 0, 1);
  Atomics.notify(signal, 0);
});
