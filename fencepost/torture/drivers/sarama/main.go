// The driver of sarama.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/IBM/sarama"
)

const module = "github.com/IBM/sarama"

var codecs = map[string]sarama.CompressionCodec{"none": sarama.CompressionNone, "gzip": sarama.CompressionGZIP,
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
	made.Producer.Return.Successes, made.Producer.Return.Errors, made.Consumer.Return.Errors = true, true, true
	Set(given.RequestTimeoutMs, Ms, &made.Net.ReadTimeout)
	Set(given.RequestTimeoutMs, Ms, &made.Producer.Timeout)
	Set(given.MetadataMaxAgeMs, Ms, &made.Metadata.RefreshFrequency)
	Set(given.RetryBackoffMs, Ms, &made.Producer.Retry.Backoff)
	Set(given.RetryBackoffMs, Ms, &made.Metadata.Retry.Backoff)
	Set(given.Acks, func(acks int) sarama.RequiredAcks { return sarama.RequiredAcks(acks) }, &made.Producer.RequiredAcks)
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
	if given.AutoCommit != nil {
		made.Consumer.Offsets.AutoCommit.Enable = *given.AutoCommit
	}
	var err, last error
	if given.Compression != "" {
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

type under struct {
	c    *Command
	done func(Fields, error)
}

// either takes the partition of the record, or else hashes its key.
type either struct{ hash sarama.Partitioner }

func (e either) Partition(m *sarama.ProducerMessage, count int32) (int32, error) {
	if given := m.Metadata.(*under).c.Partition; given != nil {
		return *given, nil
	}
	return e.hash.Partition(m, count)
}
func (e either) RequiresConsistency() bool { return true }

type producer struct {
	client sarama.AsyncProducer
	count  sync.WaitGroup
}

func newProducer(name string, given Config) (Client, error) {
	made, err := configured(name, given)
	if err != nil {
		return nil, unjoined(err)
	}
	made.Producer.Partitioner = func(topic string) sarama.Partitioner { return either{sarama.NewHashPartitioner(topic)} }
	client, err := sarama.NewAsyncProducer(strings.Split(given.Bootstrap, ","), made)
	if err != nil {
		return nil, err
	}
	p := &producer{client: client}
	go func() {
		for m := range client.Successes() {
			p.count.Done()
			m.Metadata.(*under).done(Fields{"topic": m.Topic, "partition": m.Partition, "offset": m.Offset}, nil)
		}
	}()
	go func() {
		for m := range client.Errors() {
			p.count.Done()
			m.Msg.Metadata.(*under).done(nil, m.Err)
		}
	}()
	return p, nil
}

func (p *producer) Do(c *Command, done func(Fields, error)) {
	switch c.Command {
	case "append":
		m := &sarama.ProducerMessage{Topic: c.Topic, Metadata: &under{c, done}}
		if c.Key != nil {
			m.Key = sarama.ByteEncoder(c.Key)
		}
		if c.Value != nil {
			m.Value = sarama.ByteEncoder(c.Value)
		}
		for _, header := range c.Headers {
			m.Headers = append(m.Headers, sarama.RecordHeader{Key: []byte(*header[0]), Value: Bytes(header[1])})
		}
		if c.TimestampMs != nil {
			m.Timestamp = time.UnixMilli(*c.TimestampMs)
		}
		p.count.Add(1)
		p.client.Input() <- m
	case "flush":
		p.count.Wait()
		done(nil, nil)
	case "close":
		p.client.AsyncClose()
		p.count.Wait()
		done(nil, nil)
	}
}

type handed struct {
	session sarama.ConsumerGroupSession
	message *sarama.ConsumerMessage
}

type consumer struct {
	name     string
	client   sarama.Client
	group    string
	auto     bool
	members  sarama.ConsumerGroup
	loose    sarama.Consumer
	pulled   map[Place]func()
	records  chan *Record
	of       sync.Map // handed, by record
	kept     *Record
	session  sarama.ConsumerGroupSession
	marked   map[Place]int64
	lock     sync.Mutex
	stop     context.CancelFunc
	finished chan struct{}
}

func newConsumer(name string, given Config) (Client, error) {
	made, err := configured(name, given)
	if err != nil {
		return nil, unjoined(err)
	}
	client, err := sarama.NewClient(strings.Split(given.Bootstrap, ","), made)
	return &consumer{name: name, client: client, group: given.Group, auto: made.Consumer.Offsets.AutoCommit.Enable,
		records: make(chan *Record), pulled: map[Place]func(){}, marked: map[Place]int64{}}, err
}

func shown(m *sarama.ConsumerMessage) *Record {
	one := &Record{m.Topic, m.Partition, m.Offset, m.Key, m.Value, [][2]any{}, m.Timestamp.UnixMilli(), -1}
	for _, header := range m.Headers {
		one.Headers = append(one.Headers, [2]any{string(header.Key), header.Value})
	}
	return one
}

func (k *consumer) Setup(session sarama.ConsumerGroupSession) error {
	k.lock.Lock()
	k.session, k.marked = session, map[Place]int64{}
	k.lock.Unlock()
	Happened("assigned", k.name, Fields{"partitions": places(session.Claims()), "generation": session.GenerationID(), "member": session.MemberID()})
	return nil
}

func (k *consumer) Cleanup(session sarama.ConsumerGroupSession) error {
	Happened("revoked", k.name, Fields{"partitions": places(session.Claims())})
	return nil
}

func places(claims map[string][]int32) []Place {
	where := []Place{}
	for topic, numbers := range claims {
		for _, number := range numbers {
			where = append(where, Place{Topic: topic, Partition: number})
		}
	}
	return where
}

func (k *consumer) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for m := range claim.Messages() {
		one := shown(m)
		k.of.Store(one, handed{session, m})
		select {
		case k.records <- one:
		case <-session.Context().Done():
			k.of.Delete(one)
			return nil
		}
	}
	return nil
}

func (k *consumer) subscribe(topics []string) (err error) {
	if k.members, err = sarama.NewConsumerGroupFromClient(k.group, k.client); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	k.stop, k.finished = stop, make(chan struct{})
	go func() {
		for err := range k.members.Errors() {
			Happened("trouble", k.name, Fields{"error": trouble(err)})
		}
	}()
	go func() {
		defer close(k.finished)
		for ctx.Err() == nil {
			if err := k.members.Consume(ctx, topics, k); err != nil && ctx.Err() == nil {
				Happened("trouble", k.name, Fields{"error": trouble(err)})
				time.Sleep(100 * time.Millisecond)
			}
		}
	}()
	return nil
}

func (k *consumer) assign(where Place) (err error) {
	if k.loose == nil {
		if k.loose, err = sarama.NewConsumerFromClient(k.client); err != nil {
			return err
		}
	}
	key := Place{where.Topic, where.Partition, 0}
	if end := k.pulled[key]; end != nil {
		end()
	}
	pulled, err := k.loose.ConsumePartition(where.Topic, where.Partition, where.Offset)
	if err != nil {
		return err
	}
	gone := make(chan struct{})
	k.pulled[key] = func() { close(gone); pulled.Close() }
	if k.kept != nil && k.kept.Topic == where.Topic && k.kept.Partition == where.Partition {
		k.kept = nil
	}
	go func() {
		for m := range pulled.Messages() {
			select {
			case k.records <- shown(m):
			case <-gone:
			}
		}
	}()
	go func() {
		for err := range pulled.Errors() {
			Happened("trouble", k.name, Fields{"error": trouble(err)})
		}
	}()
	return nil
}

func trouble(err error) Fields {
	shown := Fields{"name": "error", "code": nil, "text": err.Error()}
	for key, value := range errorOf(err) {
		shown[key] = value
	}
	return shown
}

func (k *consumer) taken(one *Record) {
	if of, ok := k.of.LoadAndDelete(one); ok {
		k.lock.Lock()
		defer k.lock.Unlock()
		if h := of.(handed); k.auto {
			h.session.MarkMessage(h.message, "")
		} else if h.session == k.session {
			k.marked[Place{one.Topic, one.Partition, 0}] = one.Offset + 1
		}
	}
}

func (k *consumer) commit(c *Command) []Place {
	k.lock.Lock()
	defer k.lock.Unlock()
	offsets := c.Offsets
	if offsets == nil {
		for where, next := range k.marked {
			offsets = append(offsets, Place{where.Topic, where.Partition, next})
		}
	}
	for _, one := range offsets {
		k.session.ResetOffset(one.Topic, one.Partition, one.Offset, "") // backwards
		k.session.MarkOffset(one.Topic, one.Partition, one.Offset, "")  // forwards
	}
	k.session.Commit()
	return offsets
}

func (k *consumer) Do(c *Command, done func(Fields, error)) {
	switch c.Command {
	case "subscribe":
		topics := []string{}
		json.Unmarshal(c.Topics, &topics)
		done(nil, k.subscribe(topics))
	case "assign":
		var err error
		for _, one := range c.Partitions {
			err = errors.Join(err, k.assign(one))
		}
		done(nil, err)
	case "poll":
		done(Fields{"records": Collect(k.records, c, &k.kept, k.taken)}, nil)
	case "seek":
		if k.members != nil {
			done(nil, Refused{"a consumer with assigned partitions: sarama's groups cannot seek", "a member of a group"})
			return
		}
		done(nil, k.assign(Place{c.Topic, *c.Partition, c.Offset}))
	case "commit":
		if k.session == nil {
			done(nil, errors.New("no session of a group"))
			return
		}
		done(Fields{"reported": false, "offsets": k.commit(c)}, nil)
	case "committed":
		rows, err := k.committed(c.Partitions)
		done(Fields{"offsets": rows}, err)
	case "close":
		for _, end := range k.pulled {
			end()
		}
		var err error
		if k.members != nil {
			k.stop()
			err = k.members.Close()
			<-k.finished
		}
		k.client.Close()
		done(nil, err)
	}
}

func (k *consumer) committed(of []Place) ([]Place, error) {
	admin, err := sarama.NewClusterAdminFromClient(k.client)
	if err != nil {
		return nil, err
	}
	asked := map[string][]int32{}
	for _, one := range of {
		asked[one.Topic] = append(asked[one.Topic], one.Partition)
	}
	said, err := admin.ListConsumerGroupOffsets(k.group, asked)
	if err != nil {
		return nil, err
	}
	for number, one := range of {
		block := said.GetBlock(one.Topic, one.Partition)
		if block == nil || block.Err != sarama.ErrNoError {
			return nil, errors.New("no offset in the answer")
		}
		of[number].Offset = block.Offset
	}
	return of, nil
}

type admin struct{ client sarama.ClusterAdmin }

func newAdmin(name string, given Config) (Client, error) {
	made, err := configured(name, given)
	if err != nil {
		return nil, unjoined(err)
	}
	client, err := sarama.NewClusterAdmin(strings.Split(given.Bootstrap, ","), made)
	return admin{client}, err
}

// row is one topic's outcome. sarama wraps errors of topics in a type of their own, which is not always shown by errors.As.
func row(name string, err error) Fields {
	if err == nil {
		return Fields{"name": name, "error": nil}
	}
	var topic *sarama.TopicError
	if errors.As(err, &topic) {
		err = topic.Err
	}
	return Fields{"name": name, "error": trouble(err)}
}

func (a admin) Do(c *Command, done func(Fields, error)) {
	names, rows := []string{}, []Fields{}
	json.Unmarshal(c.Topics, &names)
	config, entries := map[string]string{}, map[string]*string{}
	switch c.Command {
	case "create_topics":
		topics := []Topic{}
		json.Unmarshal(c.Topics, &topics)
		for _, one := range topics {
			detail := &sarama.TopicDetail{NumPartitions: one.Partitions, ReplicationFactor: one.ReplicationFactor, ConfigEntries: map[string]*string{}}
			for name, value := range one.Config {
				detail.ConfigEntries[name] = &value
			}
			rows = append(rows, row(one.Name, a.client.CreateTopic(one.Name, detail, false)))
		}
		done(Fields{"topics": rows}, nil)
	case "delete_topics":
		for _, name := range names {
			rows = append(rows, row(name, a.client.DeleteTopic(name)))
		}
		done(Fields{"topics": rows}, nil)
	case "describe_topics":
		said, err := a.client.DescribeTopics(names)
		for _, topic := range said {
			partitions := []Fields{}
			for _, one := range topic.Partitions {
				partitions = append(partitions, Fields{"partition": one.ID, "leader": one.Leader, "replicas": one.Replicas, "isr": one.Isr})
			}
			shown := row(topic.Name, nil)
			if topic.Err != sarama.ErrNoError {
				shown = row(topic.Name, topic.Err)
			}
			shown["partitions"] = partitions
			rows = append(rows, shown)
		}
		done(Fields{"topics": rows}, err)
	case "describe_configs":
		said, err := a.client.DescribeConfig(sarama.ConfigResource{Type: sarama.TopicResource, Name: c.Topic})
		for _, entry := range said {
			config[entry.Name] = entry.Value
		}
		done(Fields{"config": config}, err)
	case "alter_configs":
		json.Unmarshal(c.Config, &config)
		for name, value := range config {
			entries[name] = &value
		}
		done(nil, a.client.AlterConfig(sarama.TopicResource, c.Topic, entries, false))
	case "close":
		done(nil, a.client.Close())
	}
}

func unjoined(err error) error {
	var refused Refused
	if errors.As(err, &refused) {
		return refused
	}
	return err
}

func main() {
	Serve(Library{
		Ready: Fields{"driver": "sarama", "library": module, "version": Version(module), "idempotence": true, "transactions": false,
			"codecs": []string{"none", "gzip", "snappy", "lz4", "zstd"}, "acks": []int{0, 1, -1},
			"assignors": []string{"range", "roundrobin", "sticky"}, "commit_modes": []string{"sync"}},
		Open: map[string]func(string, Config) (Client, error){"producer": newProducer, "consumer": newConsumer, "admin": newAdmin},
		Roles: map[string][]string{"producer": {"append", "flush"},
			"consumer": {"subscribe", "assign", "poll", "seek", "commit", "committed"},
			"admin":    {"create_topics", "describe_topics", "delete_topics", "describe_configs", "alter_configs"}},
		Config: []string{"bootstrap", "client_id", "request_timeout_ms", "metadata_max_age_ms", "retry_backoff_ms", "acks", "idempotence",
			"in_flight", "linger_ms", "batch_bytes", "batch_records", "compression", "retries", "group", "isolation", "assignor", "auto_commit",
			"auto_commit_interval_ms", "session_timeout_ms", "heartbeat_interval_ms", "offset_reset", "fetch_max_wait_ms", "fetch_min_bytes"},
		ErrorOf: errorOf,
	})
}
