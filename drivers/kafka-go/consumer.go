// The consumer: readers, and what they handed out.
package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"
)

type consumer struct {
	name    string
	config  kafka.ReaderConfig
	auto    bool
	client  *kafka.Client
	readers map[Place]*kafka.Reader // one for each assigned partition; of a group one
	member  *kafka.Reader
	stop    map[Place]context.CancelFunc
	pushed  *Pushed
	handed  map[Place]kafka.Message
}

func newConsumer(name string, given Config) (Client, error) {
	brokers := strings.Split(given.Bootstrap, ",")
	k := &consumer{name: name, auto: given.AutoCommit == nil || *given.AutoCommit,
		client: &kafka.Client{Addr: kafka.TCP(brokers...)},
		pushed: NewPushed(), readers: map[Place]*kafka.Reader{}, stop: map[Place]context.CancelFunc{},
		handed: map[Place]kafka.Message{}}
	k.config = kafka.ReaderConfig{Brokers: brokers, GroupID: given.Group, MaxWait: 500 * time.Millisecond,
		MaxBytes: 1e6, // its own default, which it compares with MinBytes before it takes it
		Dialer:   &kafka.Dialer{ClientID: name, Timeout: 10 * time.Second, DualStack: true}}
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
			one := &Record{m.Topic, int32(m.Partition), m.Offset, m.Key, m.Value, [][2]any{},
				m.Time.UnixMilli(), -1}
			for _, header := range m.Headers {
				one.Headers = append(one.Headers, [2]any{header.Key, header.Value})
			}
			if !k.pushed.Push(ctx, one, m) {
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
	k.pushed.Drop(where)
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

func (k *consumer) taken(one *Record, of any) {
	if m, ok := of.(kafka.Message); ok && k.member != nil {
		k.handed[Place{one.Topic, one.Partition, 0}] = m
		if k.auto {
			k.member.CommitMessages(context.Background(), m) // what ReadMessage does
		}
	}
}

func (k *consumer) Do(c *Command, done func(Fields, error)) { Read(k, c, done) }

func (k *consumer) Subscribe(topics []string) error {
	k.config.GroupTopics = topics
	k.member = kafka.NewReader(k.config)
	k.pump(Place{}, k.member)
	return nil
}

func (k *consumer) Assign(of []Place) (err error) {
	for _, one := range of {
		err = errors.Join(err, k.assign(one))
	}
	return err
}

func (k *consumer) Poll(c *Command) []*Record { return k.pushed.Take(c, k.taken) }

func (k *consumer) Seek(to Place) error {
	if k.member != nil {
		return Refused{"a consumer with assigned partitions: kafka-go's groups cannot seek",
			"a member of a group"}
	}
	return k.assign(to)
}

func (k *consumer) Commit(c *Command, done func(Fields, error)) {
	messages, rows := []kafka.Message{}, []Place{}
	for _, one := range c.Offsets {
		messages = append(messages, kafka.Message{Topic: one.Topic, Partition: int(one.Partition),
			Offset: one.Offset - 1})
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
}

func (k *consumer) Committed(of []Place) ([]Place, error) {
	for number, one := range of {
		said, err := k.client.OffsetFetch(context.Background(),
			&kafka.OffsetFetchRequest{GroupID: k.config.GroupID,
				Topics: map[string][]int{one.Topic: {int(one.Partition)}}})
		if err == nil && len(said.Topics[one.Topic]) == 0 {
			err = errors.Join(said.Error, errors.New("an answer without the partition"))
		}
		if err != nil {
			return nil, err
		}
		of[number].Offset = said.Topics[one.Topic][0].CommittedOffset
	}
	return of, nil
}

func (k *consumer) Close() (err error) {
	for _, stop := range k.stop {
		stop()
	}
	for _, reader := range k.readers {
		reader.Close()
	}
	if k.member != nil {
		err = k.member.Close()
	}
	return err
}
