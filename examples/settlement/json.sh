# Numbers have points, whatever the language.
export LC_ALL=C

# Reads a payload: `payload=$(cat)`, then `field NAME` prints the text or number of that name. For payloads whose
# texts hold no quotes, as these are; with jq it would be `jq -r .NAME`.
field() {
    printf '%s' "$payload" | awk -v name="$1" '
        match($0, "\"" name "\": *(\"[^\"]*\"|[0-9]+)") {
            value = substr($0, RSTART + length(name) + 3, RLENGTH - length(name) - 3)
            gsub(/^ *"?|"$/, "", value)
            print value
        }'
}
