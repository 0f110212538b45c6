// The driver of librdkafka through confluent-kafka-go, which has its releases from 1.0 on.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"
)

const module = "github.com/confluentinc/confluent-kafka-go/v2"
const patience = 30 * time.Second

var codecs = map[string]string{"none": "none", "gzip": "gzip", "snappy": "snappy", "lz4": "lz4", "zstd": "zstd"}
var assignors = map[string]string{"range": "range", "roundrobin": "roundrobin", "cooperative-sticky": "cooperative-sticky"}
var resets = map[string]string{"earliest": "earliest", "latest": "latest", "none": "error"}

func errorOf(err error) Fields {
	var known kafka.Error
	if errors.As(err, &known) {
		return Fields{"name": known.Code().String(), "code": int(known.Code()), "text": known.Error(), "fatal": known.IsFatal()}
	}
	return nil
}

func trouble(name string, err kafka.Error) { Happened("trouble", name, Fields{"error": errorOf(err)}) }

// properties are the settings in librdkafka's words, for those that were given.
func properties(given Config) (*kafka.ConfigMap, error) {
	made := kafka.ConfigMap{"bootstrap.servers": given.Bootstrap, "log_level": 0}
	for name, value := range map[string]*int{"metadata.max.age.ms": given.MetadataMaxAgeMs, "retry.backoff.ms": given.RetryBackoffMs,
		"socket.timeout.ms": given.RequestTimeoutMs, "acks": given.Acks, "max.in.flight": given.InFlight, "linger.ms": given.LingerMs,
		"batch.size": given.BatchBytes, "batch.num.messages": given.BatchRecords, "message.send.max.retries": given.Retries,
		"message.timeout.ms": given.DeliveryTimeoutMs, "transaction.timeout.ms": given.TransactionTimeoutMs,
		"auto.commit.interval.ms": given.AutoCommitIntervalMs, "session.timeout.ms": given.SessionTimeoutMs,
		"heartbeat.interval.ms": given.HeartbeatIntervalMs, "max.poll.interval.ms": given.MaxPollIntervalMs,
		"fetch.wait.max.ms": given.FetchMaxWaitMs, "fetch.min.bytes": given.FetchMinBytes, "fetch.max.bytes": given.FetchMaxBytes} {
		if value != nil {
			made[name] = *value
		}
	}
	for name, value := range map[string]*bool{"enable.idempotence": given.Idempotence, "enable.auto.commit": given.AutoCommit} {
		if value != nil {
			made[name] = *value
		}
	}
	for name, value := range map[string]string{"client.id": given.ClientId, "transactional.id": given.TransactionalId,
		"group.id": given.Group, "group.instance.id": given.GroupInstanceId, "isolation.level": given.Isolation} {
		if value != "" {
			made[name] = value
		}
	}
	for name, of := range map[string]struct {
		value string
		table map[string]string
	}{"compression.type": {given.Compression, codecs}, "partition.assignment.strategy": {given.Assignor, assignors},
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

type producer struct{ client *kafka.Producer }

func newProducer(name string, given Config) (Client, error) {
	made, err := properties(given)
	if err != nil {
		return nil, err
	}
	client, err := kafka.NewProducer(made)
	if err != nil {
		return nil, err
	}
	go func() {
		for event := range client.Events() {
			switch one := event.(type) {
			case *kafka.Message:
				at := one.TopicPartition
				one.Opaque.(func(Fields, error))(Fields{"topic": *at.Topic, "partition": at.Partition, "offset": max(int64(at.Offset), -1)}, at.Error)
			case kafka.Error:
				trouble(name, one)
			}
		}
	}()
	if given.TransactionalId != "" {
		ctx, stop := within()
		defer stop()
		if err = client.InitTransactions(ctx); err != nil {
			client.Close()
		}
	}
	return producer{client}, err
}

func (p producer) Do(c *Command, done func(Fields, error)) {
	ctx, stop := within()
	defer stop()
	switch c.Command {
	case "append":
		m := &kafka.Message{Key: c.Key, Value: c.Value, Opaque: done,
			TopicPartition: kafka.TopicPartition{Topic: &c.Topic, Partition: kafka.PartitionAny}}
		if c.Partition != nil {
			m.TopicPartition.Partition = *c.Partition
		}
		if c.TimestampMs != nil {
			m.Timestamp = time.UnixMilli(*c.TimestampMs)
		}
		for _, header := range c.Headers {
			m.Headers = append(m.Headers, kafka.Header{Key: *header[0], Value: Bytes(header[1])})
		}
		if err := p.client.Produce(m, nil); err != nil {
			done(nil, err)
		}
	case "flush":
		if left := p.client.Flush(c.TimeoutMs); left > 0 {
			done(nil, fmt.Errorf("%d records are still in the queue", left))
			return
		}
		done(nil, nil)
	case "begin":
		done(nil, p.client.BeginTransaction())
	case "commit_transaction":
		done(nil, p.client.CommitTransaction(ctx))
	case "abort_transaction":
		done(nil, p.client.AbortTransaction(ctx))
	case "close":
		p.client.Flush(c.TimeoutMs)
		p.client.Close()
		done(nil, nil)
	}
}

type consumer struct {
	name   string
	client *kafka.Consumer
	kept   []*Record
	handed map[string]map[int32]int64
}

func newConsumer(name string, given Config) (Client, error) {
	if given.Group == "" {
		given.Group = name + "-alone"
	}
	made, err := properties(given)
	if err != nil {
		return nil, err
	}
	client, err := kafka.NewConsumer(made)
	return &consumer{name: name, client: client, handed: map[string]map[int32]int64{}}, err
}

func (k *consumer) rebalanced(_ *kafka.Consumer, event kafka.Event) error {
	kind, changed := "assigned", []kafka.TopicPartition{}
	switch one := event.(type) {
	case kafka.AssignedPartitions:
		changed = one.Partitions
	case kafka.RevokedPartitions:
		kind, changed = "revoked", one.Partitions
	}
	where := []Place{}
	for _, one := range changed {
		where = append(where, Place{Topic: *one.Topic, Partition: one.Partition})
		delete(k.handed[*one.Topic], one.Partition)
	}
	Happened(kind, k.name, Fields{"partitions": where})
	return nil
}

func (k *consumer) poll(c *Command) []*Record {
	for until := time.Now().Add(Ms(c.TimeoutMs)); len(k.kept) < min(c.MaxRecords, 1000); {
		left := max(0, int(time.Until(until).Milliseconds()))
		if len(k.kept) > 0 {
			left = 0
		}
		event := k.client.Poll(left)
		switch one := event.(type) {
		case *kafka.Message:
			if one.TopicPartition.Error != nil {
				Happened("trouble", k.name, Fields{"error": errorOf(one.TopicPartition.Error)})
				continue
			}
			k.kept = append(k.kept, shown(one))
		case kafka.Error:
			trouble(k.name, one)
		case nil:
			until = time.Time{}
		}
		if time.Now().After(until) {
			break
		}
	}
	var records []*Record
	records, k.kept = Bounded(k.kept)
	for _, one := range records {
		if k.handed[one.Topic] == nil {
			k.handed[one.Topic] = map[int32]int64{}
		}
		k.handed[one.Topic][one.Partition] = one.Offset + 1
	}
	return records
}

func shown(one *kafka.Message) *Record {
	at := one.TopicPartition
	made := &Record{*at.Topic, at.Partition, int64(at.Offset), one.Key, one.Value, [][2]any{}, one.Timestamp.UnixMilli(), -1}
	for _, header := range one.Headers {
		made.Headers = append(made.Headers, [2]any{header.Key, header.Value})
	}
	return made
}

func places(rows []Place) []kafka.TopicPartition {
	made := []kafka.TopicPartition{}
	for _, one := range rows {
		made = append(made, kafka.TopicPartition{Topic: &one.Topic, Partition: one.Partition, Offset: kafka.Offset(one.Offset)})
	}
	return made
}

func rowsOf(said []kafka.TopicPartition) ([]Place, error) {
	rows, err := []Place{}, error(nil)
	for _, one := range said {
		err = errors.Join(err, one.Error)
		rows = append(rows, Place{*one.Topic, one.Partition, max(int64(one.Offset), -1)})
	}
	return rows, err
}

func (k *consumer) Do(c *Command, done func(Fields, error)) {
	switch c.Command {
	case "subscribe", "resubscribe":
		topics := []string{}
		json.Unmarshal(c.Topics, &topics)
		done(nil, k.client.SubscribeTopics(topics, k.rebalanced))
	case "assign":
		done(nil, k.client.Assign(places(c.Partitions)))
	case "poll":
		done(Fields{"records": k.poll(c)}, nil)
	case "seek":
		k.kept = nil
		done(nil, k.client.Seek(places([]Place{{c.Topic, *c.Partition, c.Offset}})[0], int(patience.Milliseconds())))
	case "commit":
		offsets := c.Offsets
		for topic, numbers := range k.handed {
			for number, next := range numbers {
				if c.Offsets == nil {
					offsets = append(offsets, Place{topic, number, next})
				}
			}
		}
		if len(offsets) == 0 {
			done(Fields{"offsets": []Place{}}, nil)
			return
		}
		said, err := k.client.CommitOffsets(places(offsets))
		rows, failed := rowsOf(said)
		done(Fields{"offsets": rows}, errors.Join(err, failed))
	case "committed":
		said, err := k.client.Committed(places(c.Partitions), int(patience.Milliseconds()))
		rows, failed := rowsOf(said)
		done(Fields{"offsets": rows}, errors.Join(err, failed))
	case "close":
		done(nil, k.client.Close())
	}
}

func main() {
	_, linked := kafka.LibraryVersion()
	Serve(Library{
		Ready: Fields{"driver": "confluent-kafka-go", "library": "librdkafka " + linked, "version": Version(module), "idempotence": true,
			"transactions": true, "codecs": []string{"none", "gzip", "snappy", "lz4", "zstd"}, "acks": []int{0, 1, -1},
			"assignors": []string{"range", "roundrobin", "cooperative-sticky"}, "commit_modes": []string{"sync"}},
		Open: map[string]func(string, Config) (Client, error){"producer": newProducer, "consumer": newConsumer},
		Roles: map[string][]string{"producer": {"append", "flush", "begin", "commit_transaction", "abort_transaction"},
			"consumer": {"subscribe", "resubscribe", "assign", "poll", "seek", "commit", "committed"}},
		Config: []string{"bootstrap", "client_id", "request_timeout_ms", "metadata_max_age_ms", "retry_backoff_ms", "acks", "idempotence",
			"in_flight", "linger_ms", "batch_bytes", "batch_records", "compression", "retries", "delivery_timeout_ms", "transactional_id",
			"transaction_timeout_ms", "group", "group_instance_id", "isolation", "assignor", "auto_commit", "auto_commit_interval_ms",
			"session_timeout_ms", "heartbeat_interval_ms", "max_poll_interval_ms", "offset_reset", "fetch_max_wait_ms", "fetch_min_bytes",
			"fetch_max_bytes"},
		ErrorOf: errorOf,
	})
}
