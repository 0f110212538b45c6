// The driver of kafka-go. It has no idempotent producer, no transactions, and shows no assignments.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
)

const module = "github.com/segmentio/kafka-go"

var codecs = map[string]kafka.Compression{"none": 0, "gzip": kafka.Gzip, "snappy": kafka.Snappy, "lz4": kafka.Lz4, "zstd": kafka.Zstd}
var balancers = map[string]kafka.GroupBalancer{"range": kafka.RangeGroupBalancer{}, "roundrobin": kafka.RoundRobinGroupBalancer{}}
var resets = map[string]int64{"earliest": kafka.FirstOffset, "latest": kafka.LastOffset}

func errorOf(err error) Fields {
	var number kafka.Error
	if errors.As(err, &number) {
		return Fields{"name": number.Title(), "code": int(number), "text": err.Error()}
	}
	return nil
}

func trouble(err error) Fields {
	shown := Fields{"name": "error", "code": nil, "text": cut(err.Error())}
	for key, value := range errorOf(err) {
		shown[key] = value
	}
	return shown
}

func row(name string, err error) Fields {
	if err == nil {
		return Fields{"name": name, "error": nil}
	}
	shown := Fields{"name": "error", "code": nil, "text": err.Error()}
	for key, value := range errorOf(err) {
		shown[key] = value
	}
	return Fields{"name": name, "error": shown}
}

type under struct {
	c    *Command
	done func(Fields, error)
}

type producer struct {
	writer *kafka.Writer
	hash   kafka.Hash
	count  sync.WaitGroup
}

// Balance takes the partition of the record, or else hashes its key.
func (p *producer) Balance(m kafka.Message, partitions ...int) int {
	if given := m.WriterData.(*under).c.Partition; given != nil {
		return int(*given)
	}
	return p.hash.Balance(m, partitions...)
}

func newProducer(name string, given Config) (Client, error) {
	if given.Idempotence != nil && *given.Idempotence {
		return nil, Refused{"a producer without idempotence: kafka-go has none", "idempotence"}
	}
	p := &producer{}
	p.writer = &kafka.Writer{Addr: kafka.TCP(strings.Split(given.Bootstrap, ",")...), Async: true, Balancer: p,
		RequiredAcks: kafka.RequireAll, BatchTimeout: 5 * time.Millisecond, Completion: p.delivered,
		Transport: &kafka.Transport{ClientID: name}}
	Set(given.Acks, func(acks int) kafka.RequiredAcks { return kafka.RequiredAcks(acks) }, &p.writer.RequiredAcks)
	Set(given.LingerMs, Ms, &p.writer.BatchTimeout)
	Set(given.BatchRecords, Int, &p.writer.BatchSize)
	Set(given.BatchBytes, func(size int) int64 { return int64(size) }, &p.writer.BatchBytes)
	Set(given.Retries, func(count int) int { return count + 1 }, &p.writer.MaxAttempts)
	Set(given.RequestTimeoutMs, Ms, &p.writer.WriteTimeout)
	Set(given.RequestTimeoutMs, Ms, &p.writer.ReadTimeout)
	Set(given.RetryBackoffMs, Ms, &p.writer.WriteBackoffMin)
	var err error
	if given.Compression != "" {
		p.writer.Compression, err = OneOf(given.Compression, codecs, "codec")
	}
	return p, err
}

func (p *producer) delivered(messages []kafka.Message, err error) {
	for place, m := range messages {
		one := err
		var each kafka.WriteErrors
		if errors.As(err, &each) && place < len(each) {
			one = each[place]
		}
		offset := m.Offset
		if p.writer.RequiredAcks == kafka.RequireNone {
			offset = -1
		}
		m.WriterData.(*under).done(Fields{"topic": m.Topic, "partition": m.Partition, "offset": offset}, one)
		p.count.Done()
	}
}

func (p *producer) Do(c *Command, done func(Fields, error)) {
	switch c.Command {
	case "append":
		m := kafka.Message{Topic: c.Topic, Key: c.Key, Value: c.Value, WriterData: &under{c, done}}
		for _, header := range c.Headers {
			m.Headers = append(m.Headers, kafka.Header{Key: *header[0], Value: Bytes(header[1])})
		}
		if c.TimestampMs != nil {
			m.Time = time.UnixMilli(*c.TimestampMs)
		}
		p.count.Add(1)
		if err := p.writer.WriteMessages(context.Background(), m); err != nil {
			p.count.Done()
			done(nil, err)
		}
	case "flush":
		p.count.Wait()
		done(nil, nil)
	case "close":
		done(nil, p.writer.Close())
	}
}

type consumer struct {
	name    string
	config  kafka.ReaderConfig
	auto    bool
	client  *kafka.Client
	readers map[Place]*kafka.Reader // one for each assigned partition; of a group one
	member  *kafka.Reader
	stop    map[Place]context.CancelFunc
	records chan *Record
	of      sync.Map
	kept    *Record
	handed  map[Place]kafka.Message
}

func newConsumer(name string, given Config) (Client, error) {
	brokers := strings.Split(given.Bootstrap, ",")
	k := &consumer{name: name, auto: given.AutoCommit == nil || *given.AutoCommit, client: &kafka.Client{Addr: kafka.TCP(brokers...)},
		records: make(chan *Record), readers: map[Place]*kafka.Reader{}, stop: map[Place]context.CancelFunc{}, handed: map[Place]kafka.Message{}}
	k.config = kafka.ReaderConfig{Brokers: brokers, GroupID: given.Group, MaxWait: 500 * time.Millisecond,
		Dialer: &kafka.Dialer{ClientID: name, Timeout: 10 * time.Second, DualStack: true}}
	Set(given.FetchMaxWaitMs, Ms, &k.config.MaxWait)
	Set(given.FetchMinBytes, Int, &k.config.MinBytes)
	Set(given.FetchMaxBytes, Int, &k.config.MaxBytes)
	Set(given.SessionTimeoutMs, Ms, &k.config.SessionTimeout)
	Set(given.HeartbeatIntervalMs, Ms, &k.config.HeartbeatInterval)
	if k.auto {
		Set(given.AutoCommitIntervalMs, Ms, &k.config.CommitInterval)
	}
	if given.Isolation == "read_committed" {
		k.config.IsolationLevel = kafka.ReadCommitted
	}
	var err error
	if given.OffsetReset != "" {
		if k.config.StartOffset, err = OneOf(given.OffsetReset, resets, "reset"); err != nil {
			return nil, err
		}
	}
	if given.Assignor != "" {
		balancer, err := OneOf(given.Assignor, balancers, "assignor")
		if err != nil {
			return nil, err
		}
		k.config.GroupBalancers = []kafka.GroupBalancer{balancer}
	}
	return k, nil
}

func (k *consumer) pump(where Place, reader *kafka.Reader) {
	ctx, stop := context.WithCancel(context.Background())
	k.stop[where] = stop
	go func() {
		for {
			m, err := reader.FetchMessage(ctx)
			if ctx.Err() != nil || errors.Is(err, io.EOF) { // the reader is closed
				return
			}
			if err != nil { // the reader goes on trying: it only says so
				Happened("trouble", k.name, Fields{"error": trouble(err)})
				time.Sleep(Ms(100))
				continue
			}
			one := &Record{m.Topic, int32(m.Partition), m.Offset, m.Key, m.Value, [][2]any{}, m.Time.UnixMilli(), -1}
			for _, header := range m.Headers {
				one.Headers = append(one.Headers, [2]any{header.Key, header.Value})
			}
			k.of.Store(one, m)
			select {
			case k.records <- one:
			case <-ctx.Done():
				return
			}
		}
	}()
}

func (k *consumer) assign(where Place) error {
	key := Place{where.Topic, where.Partition, 0}
	if k.readers[key] != nil {
		k.stop[key]()
		k.readers[key].Close()
	}
	if k.kept != nil && k.kept.Topic == where.Topic && k.kept.Partition == where.Partition {
		k.kept = nil
	}
	config := k.config
	config.Topic, config.Partition = where.Topic, int(where.Partition)
	reader := kafka.NewReader(config)
	k.readers[key] = reader
	if err := reader.SetOffset(where.Offset); err != nil {
		return err
	}
	k.pump(key, reader)
	return nil
}

func (k *consumer) taken(one *Record) {
	if of, ok := k.of.LoadAndDelete(one); ok && k.member != nil {
		m := of.(kafka.Message)
		k.handed[Place{one.Topic, one.Partition, 0}] = m
		if k.auto {
			k.member.CommitMessages(context.Background(), m) // what ReadMessage does
		}
	}
}

func (k *consumer) Do(c *Command, done func(Fields, error)) {
	var err error
	switch c.Command {
	case "subscribe":
		json.Unmarshal(c.Topics, &k.config.GroupTopics)
		k.member = kafka.NewReader(k.config)
		k.pump(Place{}, k.member)
		done(nil, nil)
	case "assign":
		for _, one := range c.Partitions {
			err = errors.Join(err, k.assign(one))
		}
		done(nil, err)
	case "poll":
		done(Fields{"records": Collect(k.records, c, &k.kept, k.taken)}, nil)
	case "seek":
		if k.member != nil {
			done(nil, Refused{"a consumer with assigned partitions: kafka-go's groups cannot seek", "a member of a group"})
			return
		}
		done(nil, k.assign(Place{c.Topic, *c.Partition, c.Offset}))
	case "commit":
		messages, rows := []kafka.Message{}, []Place{}
		for _, one := range c.Offsets {
			messages = append(messages, kafka.Message{Topic: one.Topic, Partition: int(one.Partition), Offset: one.Offset - 1})
		}
		for _, m := range k.handed {
			if c.Offsets == nil {
				messages = append(messages, m)
			}
		}
		clear(k.handed) // an application commits each message once
		for _, m := range messages {
			rows = append(rows, Place{m.Topic, int32(m.Partition), m.Offset + 1})
		}
		done(Fields{"offsets": rows}, k.member.CommitMessages(context.Background(), messages...))
	case "committed":
		for number, one := range c.Partitions {
			said, failed := k.client.OffsetFetch(context.Background(), &kafka.OffsetFetchRequest{GroupID: k.config.GroupID,
				Topics: map[string][]int{one.Topic: {int(one.Partition)}}})
			if failed == nil && len(said.Topics[one.Topic]) == 0 {
				failed = errors.Join(said.Error, errors.New("an answer without the partition"))
			}
			if failed != nil {
				done(nil, failed)
				return
			}
			c.Partitions[number].Offset = said.Topics[one.Topic][0].CommittedOffset
		}
		done(Fields{"offsets": c.Partitions}, nil)
	case "close":
		for _, stop := range k.stop {
			stop()
		}
		for _, reader := range k.readers {
			reader.Close()
		}
		if k.member != nil {
			err = k.member.Close()
		}
		done(nil, err)
	}
}

type admin struct{ client *kafka.Client }

func newAdmin(name string, given Config) (Client, error) {
	return admin{&kafka.Client{Addr: kafka.TCP(strings.Split(given.Bootstrap, ",")...)}}, nil
}

func (a admin) Do(c *Command, done func(Fields, error)) {
	names, rows, config, ctx := []string{}, []Fields{}, map[string]string{}, context.Background()
	json.Unmarshal(c.Topics, &names)
	switch c.Command {
	case "create_topics":
		topics := []Topic{}
		json.Unmarshal(c.Topics, &topics)
		asked := &kafka.CreateTopicsRequest{}
		for _, one := range topics {
			made := kafka.TopicConfig{Topic: one.Name, NumPartitions: int(one.Partitions), ReplicationFactor: int(one.ReplicationFactor)}
			for name, value := range one.Config {
				made.ConfigEntries = append(made.ConfigEntries, kafka.ConfigEntry{ConfigName: name, ConfigValue: value})
			}
			asked.Topics = append(asked.Topics, made)
		}
		said, err := a.client.CreateTopics(ctx, asked)
		if said != nil {
			for name, one := range said.Errors {
				rows = append(rows, row(name, one))
			}
		}
		done(Fields{"topics": rows}, err)
	case "delete_topics":
		said, err := a.client.DeleteTopics(ctx, &kafka.DeleteTopicsRequest{Topics: names})
		if said != nil {
			for name, one := range said.Errors {
				rows = append(rows, row(name, one))
			}
		}
		done(Fields{"topics": rows}, err)
	case "describe_topics":
		said, err := a.client.Metadata(ctx, &kafka.MetadataRequest{Topics: names})
		if err != nil {
			done(nil, err)
			return
		}
		for _, topic := range said.Topics {
			partitions := []Fields{}
			for _, one := range topic.Partitions {
				partitions = append(partitions, Fields{"partition": one.ID, "leader": one.Leader.ID, "replicas": ids(one.Replicas), "isr": ids(one.Isr)})
			}
			shown := row(topic.Name, topic.Error)
			shown["partitions"] = partitions
			rows = append(rows, shown)
		}
		done(Fields{"topics": rows}, nil)
	case "describe_configs":
		said, err := a.client.DescribeConfigs(ctx, &kafka.DescribeConfigsRequest{Resources: []kafka.DescribeConfigRequestResource{
			{ResourceType: kafka.ResourceTypeTopic, ResourceName: c.Topic}}})
		if err == nil {
			err = said.Resources[0].Error
			for _, entry := range said.Resources[0].ConfigEntries {
				config[entry.ConfigName] = entry.ConfigValue
			}
		}
		done(Fields{"config": config}, err)
	case "alter_configs":
		json.Unmarshal(c.Config, &config)
		resource := kafka.AlterConfigRequestResource{ResourceType: kafka.ResourceTypeTopic, ResourceName: c.Topic}
		for name, value := range config {
			resource.Configs = append(resource.Configs, kafka.AlterConfigRequestConfig{Name: name, Value: value})
		}
		said, err := a.client.AlterConfigs(ctx, &kafka.AlterConfigsRequest{Resources: []kafka.AlterConfigRequestResource{resource}})
		if err == nil {
			for _, one := range said.Errors {
				err = one
			}
		}
		done(nil, err)
	case "close":
		done(nil, nil)
	}
}

func ids(brokers []kafka.Broker) []int {
	numbers := []int{}
	for _, one := range brokers {
		numbers = append(numbers, one.ID)
	}
	return numbers
}

func main() {
	Serve(Library{
		Ready: Fields{"driver": "kafka-go", "library": module, "version": Version(module), "idempotence": false, "transactions": false,
			"codecs": []string{"none", "gzip", "snappy", "lz4", "zstd"}, "acks": []int{0, 1, -1},
			"assignors": []string{"range", "roundrobin"}, "commit_modes": []string{"sync"}},
		Open: map[string]func(string, Config) (Client, error){"producer": newProducer, "consumer": newConsumer, "admin": newAdmin},
		Roles: map[string][]string{"producer": {"append", "flush"},
			"consumer": {"subscribe", "assign", "poll", "seek", "commit", "committed"},
			"admin":    {"create_topics", "describe_topics", "delete_topics", "describe_configs", "alter_configs"}},
		Config: []string{"bootstrap", "request_timeout_ms", "retry_backoff_ms", "acks", "idempotence", "linger_ms", "batch_bytes",
			"batch_records", "compression", "retries", "group", "isolation", "assignor", "auto_commit", "auto_commit_interval_ms",
			"session_timeout_ms", "heartbeat_interval_ms", "offset_reset", "fetch_max_wait_ms", "fetch_min_bytes", "fetch_max_bytes"},
		ErrorOf: errorOf,
	})
}
