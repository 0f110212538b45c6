// The producer.
package main

import (
	"fmt"
	"time"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"
)

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
				one.Opaque.(func(Fields, error))(Fields{"topic": *at.Topic, "partition": at.Partition,
					"offset": max(int64(at.Offset), -1)}, at.Error)
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
