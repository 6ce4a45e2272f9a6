/** Ends a test file that hangs, and prints what it waits for. */

type Handle = { type: string; is_active: boolean; is_referenced: boolean };

setTimeout(() => {
  const { libuv } = process.report!.getReport() as unknown as { libuv: Handle[] };
  const open = libuv.filter((handle) => handle.is_active && handle.is_referenced);
  console.error("the tests did not end; resources:", process.getActiveResourcesInfo(), "handles:", open, "CPU in µs:", process.cpuUsage());
  process.exit(1);
}, 540_000).unref();
