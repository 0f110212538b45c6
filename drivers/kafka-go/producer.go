// The producer.
package main

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
)

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
	p.writer = &kafka.Writer{Addr: kafka.TCP(strings.Split(given.Bootstrap, ",")...), Async: true,
		Balancer:     p,
		RequiredAcks: kafka.RequireAll, BatchTimeout: 5 * time.Millisecond, Completion: p.delivered,
		Transport: &kafka.Transport{ClientID: name}}
	Set(given.Acks, func(acks int) kafka.RequiredAcks { return kafka.RequiredAcks(acks) },
		&p.writer.RequiredAcks)
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
