// The producer.
package main

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

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

type producer struct {
	client *kgo.Client
	ctx    context.Context // of what is sent until the next cancel
	stop   context.CancelFunc
}

func (p *producer) begin() { p.ctx, p.stop = context.WithCancel(context.Background()) }

func writing(given Config) ([]kgo.Opt, error) {
	options := []kgo.Opt{kgo.RecordPartitioner(either{kgo.StickyKeyPartitioner(nil)})}
	add(&options, given.LingerMs, kgo.ProducerLinger, Ms)
	add(&options, given.BatchBytes, kgo.ProducerBatchMaxBytes, func(size int) int32 { return int32(size) })
	add(&options, given.InFlight, kgo.MaxProduceRequestsInflightPerBroker, Int)
	add(&options, given.Retries, kgo.RecordRetries, Int)
	add(&options, given.DeliveryTimeoutMs, kgo.RecordDeliveryTimeout, Ms)
	add(&options, given.RequestTimeoutMs, kgo.ProduceRequestTimeout, Ms)
	add(&options, given.TransactionTimeoutMs, kgo.TransactionTimeout, Ms)
	add(&options, given.Acks, func(acks kgo.Acks) kgo.Opt { return kgo.RequiredAcks(acks) },
		func(acks int) kgo.Acks {
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
	return options, nil
}

func newProducer(name string, given Config) (Client, error) {
	options, err := writing(given)
	if err != nil {
		return nil, err
	}
	client, err := kgo.NewClient(append(common(name, given), options...)...)
	p := &producer{client: client}
	p.begin()
	return p, err
}

func (p *producer) Do(c *Command, done func(Fields, error)) {
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
		p.client.Produce(p.ctx, r, func(r *kgo.Record, err error) {
			done(Fields{"topic": r.Topic, "partition": r.Partition, "offset": r.Offset}, err)
		})
	case "flush":
		ctx, stop := context.WithTimeout(context.Background(), Ms(c.TimeoutMs))
		defer stop()
		done(nil, p.client.Flush(ctx))
	case "cancel":
		p.stop()
		p.begin()
		done(nil, nil)
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
