# Use a decimal point in all locales.
export LC_ALL=C

# Reads a payload: `payload=$(cat)`, then `field NAME` prints the text or number with that name. It requires texts without quotes, as in
# these payloads; with jq it would be `jq -r .NAME`.
field() {
    printf '%s' "$payload" | awk -v name="$1" '
        match($0, "\"" name "\": *(\"[^\"]*\"|[0-9]+)") {
            value = substr($0, RSTART + length(name) + 3, RLENGTH - length(name) - 3)
            gsub(/^ *"?|"$/, "", value)
            print value
        }'
}
