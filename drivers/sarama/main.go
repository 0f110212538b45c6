// The driver of sarama.
package main

import (
	"errors"

	"github.com/IBM/sarama"
)

const module = "github.com/IBM/sarama"

var codecs = map[string]sarama.CompressionCodec{"none": sarama.CompressionNone,
	"gzip":   sarama.CompressionGZIP,
	"snappy": sarama.CompressionSnappy, "lz4": sarama.CompressionLZ4, "zstd": sarama.CompressionZSTD}

var strategies = map[string]sarama.BalanceStrategy{"range": sarama.BalanceStrategyRange,
	"roundrobin": sarama.BalanceStrategyRoundRobin, "sticky": sarama.BalanceStrategySticky}

var resets = map[string]int64{"earliest": sarama.OffsetOldest, "latest": sarama.OffsetNewest}

func errorOf(err error) Fields {
	var number sarama.KError
	if errors.As(err, &number) {
		return Fields{"name": "KError", "code": int(number), "text": err.Error()}
	}
	return nil
}

func configured(name string, given Config) (*sarama.Config, error) {
	made := sarama.NewConfig()
	made.Version = sarama.V2_4_0_0
	made.ClientID = name
	if given.ClientId != "" {
		made.ClientID = given.ClientId
	}
	made.Producer.Return.Successes, made.Producer.Return.Errors, made.Consumer.Return.Errors = true, true,
		true
	Set(given.RequestTimeoutMs, Ms, &made.Net.ReadTimeout)
	Set(given.RequestTimeoutMs, Ms, &made.Producer.Timeout)
	Set(given.MetadataMaxAgeMs, Ms, &made.Metadata.RefreshFrequency)
	Set(given.RetryBackoffMs, Ms, &made.Producer.Retry.Backoff)
	Set(given.RetryBackoffMs, Ms, &made.Metadata.Retry.Backoff)
	Set(given.Acks, func(acks int) sarama.RequiredAcks { return sarama.RequiredAcks(acks) },
		&made.Producer.RequiredAcks)
	Set(given.InFlight, Int, &made.Net.MaxOpenRequests)
	if given.Idempotence != nil {
		made.Producer.Idempotent = *given.Idempotence
		if *given.Idempotence && given.InFlight == nil {
			made.Net.MaxOpenRequests = 1 // sarama demands it
		}
		if *given.Idempotence && given.Acks == nil {
			made.Producer.RequiredAcks = sarama.WaitForAll
		}
	}
	Set(given.LingerMs, Ms, &made.Producer.Flush.Frequency)
	Set(given.BatchBytes, Int, &made.Producer.Flush.Bytes)
	Set(given.BatchRecords, Int, &made.Producer.Flush.MaxMessages)
	Set(given.Retries, Int, &made.Producer.Retry.Max)
	Set(given.SessionTimeoutMs, Ms, &made.Consumer.Group.Session.Timeout)
	Set(given.HeartbeatIntervalMs, Ms, &made.Consumer.Group.Heartbeat.Interval)
	Set(given.AutoCommitIntervalMs, Ms, &made.Consumer.Offsets.AutoCommit.Interval)
	Set(given.FetchMaxWaitMs, Ms, &made.Consumer.MaxWaitTime)
	Set(given.FetchMinBytes, func(size int) int32 { return int32(size) }, &made.Consumer.Fetch.Min)
	made.RackID = given.Rack
	if given.AutoCommit != nil {
		made.Consumer.Offsets.AutoCommit.Enable = *given.AutoCommit
	}
	var err, last error
	if version, ok := given.Extra["Version"].(string); ok {
		made.Version, err = sarama.ParseKafkaVersion(version)
	}
	if given.Compression != "" && err == nil {
		made.Producer.Compression, err = OneOf(given.Compression, codecs, "codec")
	}
	if given.OffsetReset != "" && err == nil {
		made.Consumer.Offsets.Initial, err = OneOf(given.OffsetReset, resets, "reset")
	}
	if given.Assignor != "" && err == nil {
		made.Consumer.Group.Rebalance.Strategy, err = OneOf(given.Assignor, strategies, "assignor")
	}
	if given.Isolation == "read_committed" {
		made.Consumer.IsolationLevel = sarama.ReadCommitted
	}
	if err == nil {
		last = made.Validate()
	}
	return made, errors.Join(err, last)
}

func trouble(err error) Fields { return Shown(err, errorOf) }

func main() {
	Serve(Library{
		Ready: Fields{"driver": "sarama", "library": module, "version": Version(module), "idempotence": true,
			"transactions": false,
			"codecs":       []string{"none", "gzip", "snappy", "lz4", "zstd"}, "acks": []int{0, 1, -1},
			"assignors": []string{"range", "roundrobin", "sticky"}, "commit_modes": []string{"sync"}},
		Open: map[string]func(string, Config) (Client, error){"producer": newProducer,
			"consumer": newConsumer, "admin": newAdmin},
		Roles: map[string][]string{"producer": {"append", "flush"},
			"consumer": {"subscribe", "assign", "poll", "pause", "resume", "seek", "commit", "committed"},
			"admin": {"create_topics", "describe_topics", "delete_topics", "describe_configs",
				"alter_configs"}},
		Config: []string{
			"bootstrap", "client_id", "request_timeout_ms", "metadata_max_age_ms", "retry_backoff_ms",
			"acks", "idempotence", "in_flight", "linger_ms", "batch_bytes", "batch_records",
			"compression", "retries", "group", "isolation", "assignor", "auto_commit",
			"auto_commit_interval_ms", "session_timeout_ms", "heartbeat_interval_ms", "offset_reset",
			"fetch_max_wait_ms", "fetch_min_bytes", "rack", "extra"},
		ErrorOf: errorOf,
	})
}
