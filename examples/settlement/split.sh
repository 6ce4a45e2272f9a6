#!/bin/sh
# Splits a CSV file of places into one file per country. A second run starts from the beginning.
set -eu
. ./json.sh
payload=$(cat)
file=$(field file) into=$(field into)
test -r "$file" || { echo "there is no file $file" >&2; exit 1; }
rm -rf "$into/parts"
mkdir -p "$into/parts"

# A name may contain commas; the fields after it must not.
awk -F, -v parts="$into/parts" '
    NR == 1 { next }
    { print > (parts "/" $(NF - 2) ".csv"); rows++; seen[$(NF - 2)] }
    END {
        printf "{\"rows\":%d,\"countries\":[", rows
        for (country in seen) { printf "%s\"%s\"", comma, country; comma = "," }
        print "]}"
    }' "$file"
