#!/bin/sh
# Stands for a mail to those who want to know.
set -eu
. ./json.sh
payload=$(cat)
echo "\"warned: $(field text)\""
