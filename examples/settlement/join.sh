#!/bin/sh
# Writes one line per country, most places first. Fails if places were lost or duplicated.
set -eu
. ./json.sh
payload=$(cat)
rows=$(field rows) into=$(field into)
totals="$into/totals.csv"

# The input contains the results of all countries as one list of objects.
{
    echo "places,country,lat,lng,north"
    printf '%s' "$payload" | awk '
        BEGIN { RS = "}" }
        function value(name,    rest) {
            if (!match($0, "\"" name "\": *")) return ""
            rest = substr($0, RSTART + RLENGTH)
            if (sub(/^"/, "", rest)) sub(/".*/, "", rest)
            else sub(/,.*/, "", rest)
            return rest
        }
        /"places":/ {
            country = value("country")
            printf "%s,%s,%s,%s,\"%s\"\n", value("places"), country, value("lat"), value("lng"), value("north")
        }' | sort -t, -k1,1nr -k2,2
} > "$totals.new"
mv "$totals.new" "$totals"

places=$(awk -F, 'NR > 1 { sum += $1 } END { print sum + 0 }' "$totals")
if [ "$places" -ne "$rows" ]; then
    echo "$rows places were split and $places came back" >&2
    exit 65
fi
printf '{"totals":"%s","places":%d,"countries":%d}\n' "$totals" "$places" "$(($(wc -l < "$totals") - 1))"
