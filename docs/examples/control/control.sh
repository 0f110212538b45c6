#!/bin/sh
# A test in shell: a producer without idempotence meets a lost answer, and the duplicate is found.
# Needs: fencepost, curl, and kafka-python or any other client for `fencepost cluster produce`. Run: sh control.sh
set -eu
folder=$(mktemp -d)
fencepost cluster up --embedded --kafka-port 0 --control 0 --directory "$folder" >"$folder/log" 2>&1 &
cluster=$!
trap 'kill $cluster 2>/dev/null; wait $cluster 2>/dev/null || true; rm -rf "$folder"' EXIT
until grep -q control= "$folder/log"; do
    kill -0 $cluster || { cat "$folder/log"; exit 1; }
    sleep 0.1
done
url=$(sed -n 's/^control=\(http[^ ]*\) .*/\1/p' "$folder/log")
servers=$(sed -n 's/^bootstrap.servers=//p' "$folder/log")

ask() { curl -sf -H "Authorization: Bearer $(cat "$folder/control-token")" -d "$2" "$url/$1"; }

ask create_topic '{"name": "orders"}' >/dev/null
ask fault '{"text": "lose answer to Produce on orders-0, once"}' >/dev/null
echo "an order" | fencepost cluster produce orders --bootstrap "$servers"
ask state '{}' | grep -q '"struck":{"lose_answer":1}'
ask heal '{}' >/dev/null
ask assert_no_loss '{}' | tee "$folder/said"
grep -q '"ok":true' "$folder/said"
