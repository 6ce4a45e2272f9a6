/** Faulty proxy in front of the real server: forwards requests unless a test specifies a fault. */

import { createServer } from "node:http";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { TestContext } from "node:test";

/**
 * Fault of a request. `lose` and `deny`: the request is executed, but the answer is lost or replaced by 503. `hang` or an object: it is not
 * executed, and gets no answer or this one.
 */
export type Fault = "lose" | "deny" | "hang" | { status: number; retryAfter?: number; location?: string; answer?: string } | undefined;

export class IllServer {
  fault: (method: string, path: string) => Fault = () => undefined;
  /** Returns the fault of a report of the ends of these jobs. */
  refuses: (jobs: string[]) => Fault | Promise<Fault> = () => undefined;
  /** The jobs whose ends an open transaction holds. */
  readonly held = new Set<string>();
  /** The jobs of each report of ends, and its size. */
  readonly finished: { jobs: string[]; bytes: number }[] = [];
  readonly asked: { method: string; path: string; status: number | "lost" | "hangs" }[] = [];
  readonly #server = createServer((request, response) => void this.#answer(request, response));

  constructor(readonly behind: string) {}

  async start(t: TestContext): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    t.after(() => {
      this.#server.close();
      this.#server.closeAllConnections();
    });
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Sets the faults of the next requests whose path ends with `end`, one for each request. */
  meets(method: string, end: string, ...faults: Fault[]): void {
    this.fault = (did, path) => (did === method && path.endsWith(end) ? faults.shift() : undefined);
  }

  /** Returns the statuses of the requests whose path ends with `end`, in order. */
  answered(method: string, end: string): (number | "lost" | "hangs")[] {
    return this.asked.filter((asked) => asked.method === method && asked.path.endsWith(end)).map(({ status }) => status);
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = "GET", url = "/" } = request;
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks);
    let fault = this.fault(method, url);
    if (url.endsWith("/finish")) {
      const { runs } = JSON.parse(body.toString()) as { runs: { run: string }[] };
      const [jobs, held] = [runs.map(jobOf), new Set(this.held)];
      this.finished.push({ jobs, bytes: body.length });
      fault ??= await this.refuses(jobs);
      if (jobs.some((job) => held.has(job))) fault ??= { status: 200, answer: await this.#finishBesideHeld(url, runs, held) };
    }
    if (fault === "hang") return void this.asked.push({ method, path: url, status: "hangs" });
    let status: number;
    let answer = JSON.stringify({ code: "ill", detail: "injected fault" });
    if (typeof fault === "object") {
      status = fault.status;
      answer = fault.answer ?? answer;
      if (fault.location !== undefined) response.setHeader("Location", fault.location);
      if (fault.retryAfter !== undefined) response.setHeader("Retry-After", fault.retryAfter);
    } else {
      const headers: Record<string, string> = { "Content-Type": "application/json" };
      const key = request.headers["idempotency-key"];
      if (typeof key === "string") headers["Idempotency-Key"] = key;
      const passed = await fetch(this.behind + url, { method, headers, body: body.length > 0 ? body : null });
      const text = await passed.text();
      [status, answer] = fault === "deny" ? [503, answer] : [passed.status, text];
    }
    this.asked.push({ method, path: url, status: fault === "lose" ? "lost" : status });
    if (fault === "lose") request.socket.destroy();
    else response.writeHead(status).end(answer);
  }

  /** Reports the ends that are not held. Returns the answer to all. */
  async #finishBesideHeld(url: string, ends: { run: string }[], held: Set<string>): Promise<string> {
    const runs = ends.filter((end) => !held.has(jobOf(end)));
    const headers = { "Content-Type": "application/json" };
    const passed = runs.length > 0 ? await fetch(this.behind + url, { method: "POST", headers, body: JSON.stringify({ runs }) }) : undefined;
    const told = ((await passed?.json()) as { runs: string[] } | undefined)?.runs ?? [];
    return JSON.stringify({ runs: ends.map((end) => (held.has(jobOf(end)) ? "held" : told.shift())) });
  }
}

const jobOf = ({ run }: { run: string }): string => run.split(".")[0]!;
