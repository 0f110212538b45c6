// The producer.
package main

import (
	"strings"
	"sync"
	"time"

	"github.com/IBM/sarama"
)

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
	made.Producer.Partitioner = func(topic string) sarama.Partitioner {
		return either{sarama.NewHashPartitioner(topic)}
	}
	client, err := sarama.NewAsyncProducer(strings.Split(given.Bootstrap, ","), made)
	if err != nil {
		return nil, err
	}
	p := &producer{client: client}
	go func() {
		for m := range client.Successes() {
			p.count.Done()
			m.Metadata.(*under).done(Fields{"topic": m.Topic, "partition": m.Partition, "offset": m.Offset},
				nil)
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
			m.Headers = append(m.Headers, sarama.RecordHeader{Key: []byte(*header[0]),
				Value: Bytes(header[1])})
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
