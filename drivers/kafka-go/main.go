// The driver of kafka-go. It has no idempotent producer, no transactions, and shows no assignments.
package main

import (
	"errors"

	"github.com/segmentio/kafka-go"
)

const module = "github.com/segmentio/kafka-go"

var codecs = map[string]kafka.Compression{"none": 0, "gzip": kafka.Gzip, "snappy": kafka.Snappy,
	"lz4": kafka.Lz4, "zstd": kafka.Zstd}
var balancers = map[string]kafka.GroupBalancer{"range": kafka.RangeGroupBalancer{},
	"roundrobin": kafka.RoundRobinGroupBalancer{}}
var resets = map[string]int64{"earliest": kafka.FirstOffset, "latest": kafka.LastOffset}

func errorOf(err error) Fields {
	var number kafka.Error
	if errors.As(err, &number) {
		return Fields{"name": number.Title(), "code": int(number), "text": err.Error()}
	}
	return nil
}

func trouble(err error) Fields { return Shown(err, errorOf) }

func main() {
	Serve(Library{
		Ready: Fields{"driver": "kafka-go", "library": module, "version": Version(module),
			"idempotence": false, "transactions": false,
			"codecs": []string{"none", "gzip", "snappy", "lz4", "zstd"}, "acks": []int{0, 1, -1},
			"assignors": []string{"range", "roundrobin"}, "commit_modes": []string{"sync"}},
		Open: map[string]func(string, Config) (Client, error){"producer": newProducer,
			"consumer": newConsumer, "admin": newAdmin},
		Roles: map[string][]string{"producer": {"append", "flush"},
			"consumer": {"subscribe", "assign", "poll", "seek", "commit", "committed"},
			"admin": {"create_topics", "describe_topics", "delete_topics", "describe_configs",
				"alter_configs"}},
		Config: []string{
			"bootstrap", "request_timeout_ms", "retry_backoff_ms", "acks", "idempotence", "linger_ms",
			"batch_bytes", "batch_records", "compression", "retries", "group", "isolation",
			"assignor", "auto_commit", "auto_commit_interval_ms", "session_timeout_ms",
			"heartbeat_interval_ms", "offset_reset", "fetch_max_wait_ms", "fetch_min_bytes",
			"fetch_max_bytes"},
		ErrorOf: errorOf,
	})
}
