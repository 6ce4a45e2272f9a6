#!/usr/bin/env node
// Starts the program of the package for this platform, which npm has installed as an optional dependency.
"use strict";

const { spawn } = require("node:child_process");
const { constants } = require("node:os");

const platformPackage = `@milepost/cli-${process.platform}-${process.arch}`;

function findProgram() {
  try {
    return require.resolve(`${platformPackage}/bin/milepost`);
  } catch {
    const supported = Object.keys(require("../package.json").optionalDependencies);
    console.error(
      supported.includes(platformPackage)
        ? `milepost: the package ${platformPackage} is missing. Install again without --omit=optional.`
        : `milepost: there is no package for ${process.platform} on ${process.arch}. There are: ${supported.join(", ")}.`,
    );
    process.exit(1);
  }
}

const program = spawn(findProgram(), process.argv.slice(2), { stdio: "inherit" });

// A supervisor signals only this process. A terminal signals both, but the program ignores a second signal within a second.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"]) process.on(signal, () => program.kill(signal));

program.on("error", (error) => {
  console.error(`milepost: ${error.message}. The program needs Linux with glibc; Alpine has musl.`);
  process.exit(1);
});
program.on("exit", (status, signal) => process.exit(signal ? 128 + constants.signals[signal] : status));
