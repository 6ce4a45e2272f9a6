#!/bin/sh
# Computes a country's number of places, their mean coordinates, and the northernmost place.
set -eu
. ./json.sh
payload=$(cat)
country=$(field country) part=$(field part)

awk -F, -v country="$country" '
    { places++; lat += $(NF - 1); lng += $NF }
    NR == 1 || $(NF - 1) + 0 > north {
        north = $(NF - 1) + 0
        name = $2
        for (at = 3; at < NF - 2; at++) name = name "," $at
    }
    END {
        gsub(/["\\]/, "", name)
        printf "{\"country\":\"%s\",\"places\":%d,\"lat\":%.4f,\"lng\":%.4f,\"north\":\"%s\"}\n", \
            country, places, lat / places, lng / places, name
    }' "$part"
