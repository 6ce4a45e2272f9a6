#!/bin/sh
# Runs one job. Its payload (JSON) is the standard input; the last line of the output is its result.
# Exit status 0: succeeded; 64 or 65: failed permanently; any other: failed, and another attempt follows.
payload=$(cat)
echo "attempt $MILEPOST_ATTEMPT of job $MILEPOST_JOB_ID" >&2
printf '{"greeted": %s}\n' "$payload"
