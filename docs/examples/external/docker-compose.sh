#!/bin/sh
# Breaks a cluster of docker compose for `fencepost campaign --system external --script ./docker-compose.sh`.
# docs/reference/real-runs.md describes the verbs. Run it in the folder of the compose file, or set
# COMPOSE_FILE and COMPOSE_PROJECT_NAME, which docker reads itself.
#
#   FENCEPOST_SERVICE   what comes before the broker id in the name of its service   (kafka-)
#   FENCEPOST_IMAGE     an image with iptables, for cuts; empty: no cuts             (nicolaka/netshoot)
#   FENCEPOST_CUTS      a folder that remembers the cuts                             (./.fencepost-cuts)
#
# The services need `restart: "no"`: what docker starts by itself was not down for as long as the plan says.
# There is no power_off: what a killed container wrote is still in the page cache of its host.
set -eu

image=${FENCEPOST_IMAGE-nicolaka/netshoot}
cuts=${FENCEPOST_CUTS:-.fencepost-cuts}
most_s=50 # a call may take 60 s

service() { echo "${FENCEPOST_SERVICE:-kafka-}$1"; }
container() { docker compose ps --all --quiet "$(service "$1")"; }

# The container's state: running, paused, exited, ... Docker's own failures end the script with exit code 2.
state() {
    found=$(container "$1") || exit 2
    [ -n "$found" ] || { echo "no container of $(service "$1")" >&2; exit 2; }
    docker inspect --format '{{.State.Status}}' "$found" || exit 2
}

runs() {
    seen=$(state "$1")
    [ "$seen" = running ] || [ "$seen" = paused ]
}

# The addresses of a broker, one for each network that it is in.
addresses() {
    docker inspect --format '{{range .NetworkSettings.Networks}}{{.IPAddress}} {{end}}' "$(container "$1")"
}

# A broker's filter of what it receives: filter -A|-D SOURCE-ADDRESS TARGET. The image runs in the network of
# the broker's container, so that the broker's own image needs neither iptables nor privileges.
filter() {
    docker run --rm --cap-add NET_ADMIN --network "container:$(container "$3")" "$image" \
        iptables "$1" INPUT --source "$2" --jump DROP
}

# One file a cut, with a line for each address that is dropped. A plan's names have spaces.
file_of() { echo "$cuts/$(echo "$1" | tr -c 'A-Za-z0-9\n' '-')"; }

verb=${1:-}
case $verb in
verbs)
    echo kill stop start runs pause resume ${image:+cut heal}
    ;;
kill)
    docker compose kill --signal KILL "$(service "$2")"
    waited=0
    while runs "$2"; do
        [ $waited -lt $most_s ] || { echo "$(service "$2") did not end in $most_s s" >&2; exit 1; }
        sleep 1
        waited=$((waited + 1))
    done
    ;;
stop)
    # `docker compose stop` would wait, and kill it after ten seconds.
    docker compose kill --signal TERM "$(service "$2")"
    ;;
start)
    docker compose start "$(service "$2")"
    ;;
runs)
    seen=$(state "$2") # on its own: a failure of docker ends the script here, with 2
    [ "$seen" = running ] || [ "$seen" = paused ]
    ;;
pause)
    docker compose pause "$(service "$2")"
    ;;
resume)
    seen=$(state "$2")
    [ "$seen" != paused ] || docker compose unpause "$(service "$2")"
    ;;
cut)
    # SOURCE>TARGET: the target drops what comes from the source. A container that is killed and started has
    # a new network, without the filter.
    mkdir -p "$cuts"
    file=$(file_of "$2")
    : >"$file"
    shift 2
    for pair in "$@"; do
        target=${pair#*>}
        for address in $(addresses "${pair%>*}"); do
            echo "$address $target" >>"$file"
            filter -A "$address" "$target"
        done
    done
    ;;
heal)
    file=$(file_of "$2")
    [ -e "$file" ] || exit 0
    while read -r address target; do
        # It fails where the container was started anew meanwhile: then the filter is gone.
        filter -D "$address" "$target" </dev/null || true
    done <"$file"
    rm "$file"
    ;;
*)
    echo "unknown verb '$verb'; docs/reference/real-runs.md has them" >&2
    exit 2
    ;;
esac
