// The driver of librdkafka through confluent-kafka-go, which has its releases from 1.0 on.
package main

import (
	"context"
	"errors"
	"time"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"
)

const module = "github.com/confluentinc/confluent-kafka-go/v2"
const patience = 30 * time.Second

var codecs = map[string]string{"none": "none", "gzip": "gzip", "snappy": "snappy", "lz4": "lz4",
	"zstd": "zstd"}
var assignors = map[string]string{"range": "range", "roundrobin": "roundrobin",
	"cooperative-sticky": "cooperative-sticky"}
var resets = map[string]string{"earliest": "earliest", "latest": "latest", "none": "error"}

func errorOf(err error) Fields {
	var known kafka.Error
	if errors.As(err, &known) {
		return Fields{"name": known.Code().String(), "code": int(known.Code()), "text": known.Error(),
			"fatal": known.IsFatal()}
	}
	return nil
}

func trouble(name string, err kafka.Error) { Happened("trouble", name, Fields{"error": errorOf(err)}) }

// properties are the settings in librdkafka's words, for those that were given.
func properties(given Config) (*kafka.ConfigMap, error) {
	made := kafka.ConfigMap{"bootstrap.servers": given.Bootstrap, "log_level": 0}
	for name, value := range map[string]*int{
		"topic.metadata.refresh.interval.ms": given.MetadataMaxAgeMs,
		"retry.backoff.ms":                   given.RetryBackoffMs,
		"socket.timeout.ms":                  given.RequestTimeoutMs,
		"acks":                               given.Acks,
		"max.in.flight":                      given.InFlight,
		"linger.ms":                          given.LingerMs,
		"batch.size":                         given.BatchBytes,
		"batch.num.messages":                 given.BatchRecords,
		"message.send.max.retries":           given.Retries,
		"message.timeout.ms":                 given.DeliveryTimeoutMs,
		"transaction.timeout.ms":             given.TransactionTimeoutMs,
		"auto.commit.interval.ms":            given.AutoCommitIntervalMs,
		"session.timeout.ms":                 given.SessionTimeoutMs,
		"heartbeat.interval.ms":              given.HeartbeatIntervalMs,
		"max.poll.interval.ms":               given.MaxPollIntervalMs,
		"fetch.wait.max.ms":                  given.FetchMaxWaitMs,
		"fetch.min.bytes":                    given.FetchMinBytes,
		"fetch.max.bytes":                    given.FetchMaxBytes,
	} {
		if value != nil {
			made[name] = *value
		}
	}
	for name, value := range map[string]*bool{"enable.idempotence": given.Idempotence,
		"enable.auto.commit": given.AutoCommit} {
		if value != nil {
			made[name] = *value
		}
	}
	for name, value := range map[string]string{"client.id": given.ClientId,
		"transactional.id": given.TransactionalId,
		"group.id":         given.Group, "group.instance.id": given.GroupInstanceId,
		"isolation.level": given.Isolation, "client.rack": given.Rack} {
		if value != "" {
			made[name] = value
		}
	}
	for name, of := range map[string]struct {
		value string
		table map[string]string
	}{"compression.type": {given.Compression, codecs}, "partition.assignment.strategy": {given.Assignor,
		assignors},
		"auto.offset.reset": {given.OffsetReset, resets}} {
		if of.value != "" {
			value, err := OneOf(of.value, of.table, name)
			if err != nil {
				return nil, err
			}
			made[name] = value
		}
	}
	return &made, nil
}

func within() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), patience)
}

func main() {
	_, linked := kafka.LibraryVersion()
	Serve(Library{
		Ready: Fields{"driver": "confluent-kafka-go", "library": "librdkafka " + linked,
			"version": Version(module), "idempotence": true,
			"transactions": true, "codecs": []string{"none", "gzip", "snappy", "lz4", "zstd"},
			"acks":         []int{0, 1, -1},
			"assignors":    []string{"range", "roundrobin", "cooperative-sticky"},
			"commit_modes": []string{"sync"}},
		Open: map[string]func(string, Config) (Client, error){
			"producer": newProducer, "consumer": newConsumer},
		Roles: map[string][]string{"producer": {"append", "flush", "begin", "commit_transaction",
			"abort_transaction"},
			"consumer": {"subscribe", "resubscribe", "assign", "poll", "pause", "resume", "seek", "commit",
				"committed"}},
		Config: []string{
			"bootstrap", "client_id", "request_timeout_ms", "metadata_max_age_ms", "retry_backoff_ms",
			"acks", "idempotence", "in_flight", "linger_ms", "batch_bytes", "batch_records",
			"compression", "retries", "delivery_timeout_ms", "transactional_id",
			"transaction_timeout_ms", "group", "group_instance_id", "isolation", "assignor",
			"auto_commit", "auto_commit_interval_ms", "session_timeout_ms", "heartbeat_interval_ms",
			"max_poll_interval_ms", "offset_reset", "fetch_max_wait_ms", "fetch_min_bytes",
			"fetch_max_bytes", "rack"},
		ErrorOf: errorOf,
	})
}
