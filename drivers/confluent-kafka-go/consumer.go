// The consumer: kept records, what was handed out, commits.
package main

import (
	"errors"
	"time"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"
)

type consumer struct {
	name   string
	client *kafka.Consumer
	kept   []*Record
	handed Handed
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
	return &consumer{name: name, client: client, handed: Handed{}}, err
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
		delete(k.handed, Place{*one.Topic, one.Partition, 0})
	}
	Happened(kind, k.name, Fields{"partitions": where})
	return nil
}

func (k *consumer) Poll(c *Command) []*Record {
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
	k.handed.Mark(records)
	return records
}

func shown(one *kafka.Message) *Record {
	at := one.TopicPartition
	made := &Record{*at.Topic, at.Partition, int64(at.Offset), one.Key, one.Value, [][2]any{},
		one.Timestamp.UnixMilli(), -1}
	for _, header := range one.Headers {
		made.Headers = append(made.Headers, [2]any{header.Key, header.Value})
	}
	return made
}

func places(rows []Place) []kafka.TopicPartition {
	made := []kafka.TopicPartition{}
	for _, one := range rows {
		made = append(made, kafka.TopicPartition{Topic: &one.Topic, Partition: one.Partition,
			Offset: kafka.Offset(one.Offset)})
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

func (k *consumer) Do(c *Command, done func(Fields, error)) { Read(k, c, done) }

func (k *consumer) Subscribe(topics []string) error {
	return k.client.SubscribeTopics(topics, k.rebalanced)
}

func (k *consumer) Assign(of []Place) error { return k.client.Assign(places(of)) }

func (k *consumer) Pause() error {
	given, err := k.client.Assignment()
	return errors.Join(err, k.client.Pause(given))
}

func (k *consumer) Resume() error {
	given, err := k.client.Assignment()
	return errors.Join(err, k.client.Resume(given))
}

func (k *consumer) Seek(to Place) error {
	k.kept = nil
	return k.client.Seek(places([]Place{to})[0], int(patience.Milliseconds()))
}

func (k *consumer) Commit(c *Command, done func(Fields, error)) {
	offsets := k.handed.Offsets(c)
	if len(offsets) == 0 {
		done(Fields{"offsets": []Place{}}, nil)
		return
	}
	said, err := []kafka.TopicPartition{}, error(nil)
	if c.Offsets == nil && len(k.kept) == 0 { // what it has stored is what was handed out
		said, err = k.client.Commit()
	} else {
		said, err = k.client.CommitOffsets(places(offsets))
	}
	var known kafka.Error
	if errors.As(err, &known) && known.Code() == kafka.ErrNoOffset { // all is committed
		err = nil
	}
	rows, failed := rowsOf(said)
	done(Fields{"offsets": rows}, errors.Join(err, failed))
}

func (k *consumer) Committed(of []Place) ([]Place, error) {
	said, err := k.client.Committed(places(of), int(patience.Milliseconds()))
	rows, failed := rowsOf(said)
	return rows, errors.Join(err, failed)
}

func (k *consumer) Close() error { return k.client.Close() }
