#!/bin/sh
# Spark needs a Java runtime of 17 or later; says so in one sentence when there is none.
set -u

java=java
[ -n "${JAVA_HOME:-}" ] && java=$JAVA_HOME/bin/java

if ! said=$("$java" -version 2>&1); then
    echo "fencepost: expected a Java runtime of version 17 or later, saw no $java that runs; install one, for example openjdk-17-jre-headless" >&2
    exit 2
fi
version=$(printf '%s\n' "$said" | sed -n 's/.*version "\([0-9]*\)[."-].*/\1/p' | head -n 1)
case $version in
    '' | *[!0-9]*) echo "fencepost: expected a Java runtime of version 17 or later, saw: $(printf '%s' "$said" | head -n 1)" >&2; exit 2 ;;
esac
if [ "$version" -lt 17 ]; then
    echo "fencepost: expected a Java runtime of version 17 or later, saw version $version at $java; install a newer one or set JAVA_HOME" >&2
    exit 2
fi
