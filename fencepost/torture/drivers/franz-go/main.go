// The driver of franz-go.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const module = "github.com/twmb/franz-go"

var codecs = map[string]kgo.CompressionCodec{"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(),
	"snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression()}
var balancers = map[string]kgo.GroupBalancer{"range": kgo.RangeBalancer(), "roundrobin": kgo.RoundRobinBalancer(),
	"sticky": kgo.StickyBalancer(), "cooperative-sticky": kgo.CooperativeStickyBalancer()}
var resets = map[string]kgo.Offset{"earliest": kgo.NewOffset().AtStart(), "latest": kgo.NewOffset().AtEnd(), "none": kgo.NoResetOffset()}

func errorOf(err error) Fields {
	var number *kerr.Error
	if errors.As(err, &number) {
		return Fields{"name": number.Message, "code": number.Code, "text": err.Error()}
	}
	return Fields{"name": err.Error(), "text": err.Error()}
}

func trouble(err error) Fields {
	shown := Fields{"code": nil}
	for key, value := range errorOf(err) {
		shown[key] = value
	}
	return shown
}

// either takes the partition of the record, or else the sticky partitioner's.
type either struct{ kgo.Partitioner }
type eitherTopic struct{ kgo.TopicPartitioner }

func (e either) ForTopic(topic string) kgo.TopicPartitioner {
	return eitherTopic{e.Partitioner.ForTopic(topic)}
}
func (e eitherTopic) RequiresConsistency(r *kgo.Record) bool {
	return r.Partition >= 0 || e.TopicPartitioner.RequiresConsistency(r)
}
func (e eitherTopic) Partition(r *kgo.Record, count int) int {
	if r.Partition >= 0 {
		return int(r.Partition)
	}
	return e.TopicPartitioner.Partition(r, count)
}

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
	add(&options, given.MetadataMaxAgeMs, kgo.MetadataMinAge, func(value int) time.Duration { return Ms(min(value, 2500)) }) // never above
	add(&options, given.RetryBackoffMs, func(wait time.Duration) kgo.Opt {
		return kgo.RetryBackoffFn(func(int) time.Duration { return wait })
	}, Ms)
	return options
}

type producer struct{ client *kgo.Client }

func newProducer(name string, given Config) (Client, error) {
	options := append(common(name, given), kgo.RecordPartitioner(either{kgo.StickyKeyPartitioner(nil)}))
	add(&options, given.LingerMs, kgo.ProducerLinger, Ms)
	add(&options, given.BatchBytes, kgo.ProducerBatchMaxBytes, func(size int) int32 { return int32(size) })
	add(&options, given.InFlight, kgo.MaxProduceRequestsInflightPerBroker, Int)
	add(&options, given.Retries, kgo.RecordRetries, Int)
	add(&options, given.DeliveryTimeoutMs, kgo.RecordDeliveryTimeout, Ms)
	add(&options, given.RequestTimeoutMs, kgo.ProduceRequestTimeout, Ms)
	add(&options, given.TransactionTimeoutMs, kgo.TransactionTimeout, Ms)
	add(&options, given.Acks, func(acks kgo.Acks) kgo.Opt { return kgo.RequiredAcks(acks) }, func(acks int) kgo.Acks {
		return map[int]kgo.Acks{0: kgo.NoAck(), 1: kgo.LeaderAck(), -1: kgo.AllISRAcks()}[acks]
	})
	if given.Idempotence != nil && !*given.Idempotence || given.Acks != nil && *given.Acks != -1 {
		options = append(options, kgo.DisableIdempotentWrite())
	}
	if given.Compression != "" {
		codec, err := OneOf(given.Compression, codecs, "codec")
		if err != nil {
			return nil, err
		}
		options = append(options, kgo.ProducerBatchCompression(codec))
	}
	if given.TransactionalId != "" {
		options = append(options, kgo.TransactionalID(given.TransactionalId))
	}
	client, err := kgo.NewClient(options...)
	return producer{client}, err
}

func (p producer) Do(c *Command, done func(Fields, error)) {
	switch c.Command {
	case "append":
		r := &kgo.Record{Topic: c.Topic, Key: c.Key, Value: c.Value, Partition: -1}
		if c.Partition != nil {
			r.Partition = *c.Partition
		}
		if c.TimestampMs != nil {
			r.Timestamp = time.UnixMilli(*c.TimestampMs)
		}
		for _, header := range c.Headers {
			r.Headers = append(r.Headers, kgo.RecordHeader{Key: *header[0], Value: Bytes(header[1])})
		}
		p.client.Produce(context.Background(), r, func(r *kgo.Record, err error) {
			done(Fields{"topic": r.Topic, "partition": r.Partition, "offset": r.Offset}, err)
		})
	case "flush":
		ctx, stop := context.WithTimeout(context.Background(), Ms(c.TimeoutMs))
		defer stop()
		done(nil, p.client.Flush(ctx))
	case "begin":
		done(nil, p.client.BeginTransaction())
	case "commit_transaction":
		err := p.client.Flush(context.Background())
		done(nil, errors.Join(err, p.client.EndTransaction(context.Background(), kgo.TryCommit)))
	case "abort_transaction":
		err := p.client.AbortBufferedRecords(context.Background())
		done(nil, errors.Join(err, p.client.EndTransaction(context.Background(), kgo.TryAbort)))
	case "close":
		ctx, stop := context.WithTimeout(context.Background(), Ms(c.TimeoutMs))
		defer stop()
		p.client.Flush(ctx)
		p.client.Close()
		done(nil, nil)
	}
}

type consumer struct {
	name    string
	options []kgo.Opt
	group   string
	client  *kgo.Client
	kept    []*Record
	lock    sync.Mutex
	handed  map[string]map[int32]kgo.EpochOffset
}

func newConsumer(name string, given Config) (Client, error) {
	k := &consumer{name: name, options: common(name, given), group: given.Group, handed: map[string]map[int32]kgo.EpochOffset{}}
	add(&k.options, given.FetchMaxWaitMs, kgo.FetchMaxWait, Ms)
	add(&k.options, given.FetchMinBytes, kgo.FetchMinBytes, func(size int) int32 { return int32(size) })
	add(&k.options, given.FetchMaxBytes, kgo.FetchMaxBytes, func(size int) int32 { return int32(size) })
	if given.Isolation == "read_committed" {
		k.options = append(k.options, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	}
	if given.OffsetReset != "" {
		reset, err := OneOf(given.OffsetReset, resets, "reset")
		if err != nil {
			return nil, err
		}
		k.options = append(k.options, kgo.ConsumeResetOffset(reset))
	}
	if given.Group == "" {
		return k, nil
	}
	told := func(event string) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(_ context.Context, _ *kgo.Client, claims map[string][]int32) {
			where := []Place{}
			for topic, numbers := range claims {
				for _, number := range numbers {
					where = append(where, Place{Topic: topic, Partition: number})
					k.lock.Lock()
					delete(k.handed[topic], number) // whose it is now decides what is committed
					k.lock.Unlock()
				}
			}
			Happened(event, name, Fields{"partitions": where})
		}
	}
	k.options = append(k.options, kgo.ConsumerGroup(given.Group), kgo.OnPartitionsAssigned(told("assigned")),
		kgo.OnPartitionsRevoked(told("revoked")), kgo.OnPartitionsLost(told("lost")))
	add(&k.options, given.AutoCommitIntervalMs, kgo.AutoCommitInterval, Ms)
	add(&k.options, given.SessionTimeoutMs, kgo.SessionTimeout, Ms)
	add(&k.options, given.HeartbeatIntervalMs, kgo.HeartbeatInterval, Ms)
	if given.AutoCommit != nil && !*given.AutoCommit {
		k.options = append(k.options, kgo.DisableAutoCommit())
	}
	if given.GroupInstanceId != "" {
		k.options = append(k.options, kgo.InstanceID(given.GroupInstanceId))
	}
	if given.Assignor != "" {
		balancer, err := OneOf(given.Assignor, balancers, "assignor")
		if err != nil {
			return nil, err
		}
		k.options = append(k.options, kgo.Balancers(balancer))
	}
	return k, nil
}

func (k *consumer) poll(c *Command) []*Record {
	if len(k.kept) == 0 {
		ctx, stop := context.WithTimeout(context.Background(), Ms(c.TimeoutMs))
		defer stop()
		fetched := k.client.PollRecords(ctx, min(c.MaxRecords, 1000))
		for _, failed := range fetched.Errors() {
			if !errors.Is(failed.Err, context.DeadlineExceeded) {
				Happened("trouble", k.name, Fields{"error": trouble(failed.Err)})
			}
		}
		fetched.EachRecord(func(r *kgo.Record) {
			one := &Record{r.Topic, r.Partition, r.Offset, r.Key, r.Value, [][2]any{}, r.Timestamp.UnixMilli(), r.LeaderEpoch}
			for _, header := range r.Headers {
				one.Headers = append(one.Headers, [2]any{header.Key, header.Value})
			}
			k.kept = append(k.kept, one)
		})
	}
	var records []*Record
	records, k.kept = Bounded(k.kept)
	k.lock.Lock()
	defer k.lock.Unlock()
	for _, one := range records {
		mark(k.handed, one.Topic, one.Partition, kgo.EpochOffset{Epoch: one.LeaderEpoch, Offset: one.Offset + 1})
	}
	return records
}

func mark(offsets map[string]map[int32]kgo.EpochOffset, topic string, partition int32, at kgo.EpochOffset) {
	if offsets[topic] == nil {
		offsets[topic] = map[int32]kgo.EpochOffset{}
	}
	offsets[topic][partition] = at
}

func (k *consumer) Do(c *Command, done func(Fields, error)) {
	var err error
	ctx := context.Background()
	if k.client == nil && (c.Command == "poll" || c.Command == "seek" || c.Command == "commit") {
		done(nil, Refused{"a consumer with a subscription or an assignment", c.Command})
		return
	}
	switch c.Command {
	case "subscribe":
		topics := []string{}
		json.Unmarshal(c.Topics, &topics)
		k.client, err = kgo.NewClient(append(k.options, kgo.ConsumeTopics(topics...))...)
		done(nil, err)
	case "assign":
		where := map[string]map[int32]kgo.Offset{}
		for _, one := range c.Partitions {
			if where[one.Topic] == nil {
				where[one.Topic] = map[int32]kgo.Offset{}
			}
			where[one.Topic][one.Partition] = kgo.NewOffset().At(one.Offset)
		}
		k.client, err = kgo.NewClient(append(k.options, kgo.ConsumePartitions(where))...)
		done(nil, err)
	case "poll":
		done(Fields{"records": k.poll(c)}, nil)
	case "seek":
		k.kept = nil
		where := map[string]map[int32]kgo.EpochOffset{c.Topic: {*c.Partition: {Epoch: -1, Offset: c.Offset}}}
		k.client.SetOffsets(where)
		done(nil, nil)
	case "commit":
		offsets := map[string]map[int32]kgo.EpochOffset{}
		k.lock.Lock()
		for topic, numbers := range k.handed {
			offsets[topic] = maps.Clone(numbers)
		}
		k.lock.Unlock()
		if c.Offsets != nil {
			clear(offsets)
			for _, one := range c.Offsets {
				mark(offsets, one.Topic, one.Partition, kgo.EpochOffset{Epoch: -1, Offset: one.Offset})
			}
		}
		k.commit(c, offsets, done)
	case "committed":
		admin := kadm.NewClient(k.client)
		said, err := admin.FetchOffsets(ctx, k.group)
		for number, one := range c.Partitions {
			c.Partitions[number].Offset = -1
			if found, ok := said.Lookup(one.Topic, one.Partition); ok {
				c.Partitions[number].Offset = found.At
			}
		}
		done(Fields{"offsets": c.Partitions}, err)
	case "close":
		if k.client != nil {
			k.client.Close()
		}
		done(nil, nil)
	}
}

func (k *consumer) commit(c *Command, offsets map[string]map[int32]kgo.EpochOffset, done func(Fields, error)) {
	finished := make(chan struct{})
	k.client.CommitOffsets(context.Background(), offsets, func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, said *kmsg.OffsetCommitResponse, err error) {
		rows := []Place{}
		if said != nil {
			for _, topic := range said.Topics {
				for _, one := range topic.Partitions {
					if failed := kerr.ErrorForCode(one.ErrorCode); failed != nil && err == nil {
						err = failed
					}
					rows = append(rows, Place{topic.Topic, one.Partition, offsets[topic.Topic][one.Partition].Offset})
				}
			}
		}
		done(Fields{"offsets": rows}, err)
		close(finished)
	})
	if c.Mode == "sync" {
		<-finished
	}
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
		Ready: Fields{"driver": "franz-go", "library": module, "version": Version(module), "idempotence": true, "transactions": true,
			"codecs": []string{"none", "gzip", "snappy", "lz4", "zstd"}, "acks": []int{0, 1, -1},
			"assignors": []string{"range", "roundrobin", "sticky", "cooperative-sticky"}, "commit_modes": []string{"sync", "async"}},
		Open: map[string]func(string, Config) (Client, error){"producer": newProducer, "consumer": newConsumer, "admin": newAdmin},
		Roles: map[string][]string{"producer": {"append", "flush", "begin", "commit_transaction", "abort_transaction"},
			"consumer": {"subscribe", "assign", "poll", "seek", "commit", "committed"},
			"admin":    {"create_topics", "describe_topics", "delete_topics", "describe_configs", "alter_configs"}},
		Config: []string{"bootstrap", "client_id", "request_timeout_ms", "metadata_max_age_ms", "retry_backoff_ms", "acks", "idempotence",
			"in_flight", "linger_ms", "batch_bytes", "compression", "retries", "delivery_timeout_ms", "transactional_id",
			"transaction_timeout_ms", "group", "group_instance_id", "isolation", "assignor", "auto_commit", "auto_commit_interval_ms",
			"session_timeout_ms", "heartbeat_interval_ms", "offset_reset", "fetch_max_wait_ms", "fetch_min_bytes", "fetch_max_bytes"},
		ErrorOf: errorOf,
	})
}
