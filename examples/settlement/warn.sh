#!/bin/sh
# Stands in for sending a mail.
set -eu
. ./json.sh
payload=$(cat)
echo "\"warned: $(field text)\""
