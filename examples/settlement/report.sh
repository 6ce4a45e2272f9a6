#!/bin/sh
# Writes a report of the ten countries with the most places.
set -eu
. ./json.sh
payload=$(cat)
totals=$(field totals) into=$(field into)

awk -F, '
    NR == 1 { next }
    { sum += $1; countries++ }
    NR <= 11 { line[NR] = sprintf("%-8s %8d   middle %9.4f %9.4f", $2, $1, $3, $4) }
    END {
        printf "%d places in %d countries\n\n", sum, countries
        for (at = 2; at in line; at++) print line[at]
    }' "$totals" > "$into/report.txt"
printf '{"report":"%s/report.txt"}\n' "$into"
