// The driver of franz-go.
package main

import (
	"errors"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

const module = "github.com/twmb/franz-go"

var codecs = map[string]kgo.CompressionCodec{"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(),
	"snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression()}

var balancers = map[string]kgo.GroupBalancer{"range": kgo.RangeBalancer(),
	"roundrobin": kgo.RoundRobinBalancer(),
	"sticky":     kgo.StickyBalancer(), "cooperative-sticky": kgo.CooperativeStickyBalancer()}

var resets = map[string]kgo.Offset{"earliest": kgo.NewOffset().AtStart(), "latest": kgo.NewOffset().AtEnd(),
	"none": kgo.NewOffset().AtCommitted()}

func errorOf(err error) Fields {
	var number *kerr.Error
	if errors.As(err, &number) {
		return Fields{"name": number.Message, "code": number.Code, "text": err.Error()}
	}
	return Fields{"name": err.Error(), "text": err.Error()}
}

func trouble(err error) Fields { return Shown(err, errorOf) }

// add makes an option of a setting, if it was given.
func add[T, O any](options *[]kgo.Opt, value *int, option func(T) O, convert func(int) T) {
	if value != nil {
		*options = append(*options, any(option(convert(*value))).(kgo.Opt))
	}
}

func common(name string, given Config) []kgo.Opt {
	options := []kgo.Opt{kgo.SeedBrokers(strings.Split(given.Bootstrap, ",")...), kgo.ClientID(name)}
	if given.ClientId != "" {
		options = append(options, kgo.ClientID(given.ClientId))
	}
	add(&options, given.RequestTimeoutMs, kgo.RequestTimeoutOverhead, Ms)
	add(&options, given.MetadataMaxAgeMs, kgo.MetadataMaxAge, Ms)
	add(&options, given.MetadataMaxAgeMs, kgo.MetadataMinAge,
		func(value int) time.Duration { return Ms(min(value, 2500)) }) // never above
	add(&options, given.RetryBackoffMs, func(wait time.Duration) kgo.Opt {
		return kgo.RetryBackoffFn(func(int) time.Duration { return wait })
	}, Ms)
	return options
}

func newAdmin(name string, given Config) (Client, error) {
	client, err := kgo.NewClient(common(name, given)...)
	if err != nil {
		return nil, err
	}
	return admin{kadm.NewClient(client)}, nil
}

func main() {
	Serve(Library{
		Ready: Fields{"driver": "franz-go", "library": module, "version": Version(module),
			"idempotence": true, "transactions": true,
			"codecs": []string{"none", "gzip", "snappy", "lz4", "zstd"}, "acks": []int{0, 1, -1},
			"assignors":    []string{"range", "roundrobin", "sticky", "cooperative-sticky"},
			"commit_modes": []string{"sync", "async"}},
		Open: map[string]func(string, Config) (Client, error){"producer": newProducer,
			"consumer": newConsumer, "session": newSession, "admin": newAdmin},
		Roles: map[string][]string{"producer": {"append", "flush", "begin", "commit_transaction",
			"abort_transaction", "cancel"},
			"consumer": {"subscribe", "assign", "poll", "pause", "resume", "seek", "commit", "committed"},
			"session":  {"subscribe", "poll", "append", "begin", "commit_transaction", "abort_transaction"},
			"admin": {"create_topics", "describe_topics", "delete_topics", "describe_configs",
				"alter_configs"}},
		Config: []string{
			"bootstrap", "client_id", "request_timeout_ms", "metadata_max_age_ms", "retry_backoff_ms",
			"acks", "idempotence", "in_flight", "linger_ms", "batch_bytes", "compression", "retries",
			"delivery_timeout_ms", "transactional_id", "transaction_timeout_ms", "group",
			"group_instance_id", "isolation", "assignor", "auto_commit", "auto_commit_interval_ms",
			"session_timeout_ms", "heartbeat_interval_ms", "offset_reset", "fetch_max_wait_ms",
			"fetch_min_bytes", "fetch_max_bytes", "rack", "extra"},
		ErrorOf: errorOf,
	})
}
