#!/bin/sh
# Removes files that only the batch itself needed.
set -eu
. ./json.sh
payload=$(cat)
rm -rf "$(field into)/parts"
