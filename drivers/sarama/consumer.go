// The consumer: sessions and claims, and records that wait for a poll.
package main

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/IBM/sarama"
)

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
	pushed   *Pushed
	session  sarama.ConsumerGroupSession
	marked   Handed
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
	return &consumer{name: name, client: client, group: given.Group,
		auto:   made.Consumer.Offsets.AutoCommit.Enable,
		pushed: NewPushed(), pulled: map[Place]func(){}, marked: Handed{}}, err
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
	k.session, k.marked = session, Handed{}
	k.lock.Unlock()
	Happened("assigned", k.name, Fields{"partitions": places(session.Claims()),
		"generation": session.GenerationID(), "member": session.MemberID()})
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
		if !k.pushed.Push(session.Context(), shown(m), handed{session, m}) {
			return nil
		}
	}
	return nil
}

func (k *consumer) Subscribe(topics []string) (err error) {
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
	ctx, stop := context.WithCancel(context.Background())
	k.pulled[key] = func() { stop(); pulled.Close() }
	k.pushed.Drop(where)
	go func() {
		for m := range pulled.Messages() {
			k.pushed.Push(ctx, shown(m), nil)
		}
	}()
	go func() {
		for err := range pulled.Errors() {
			Happened("trouble", k.name, Fields{"error": trouble(err)})
		}
	}()
	return nil
}

func (k *consumer) taken(one *Record, of any) {
	k.lock.Lock()
	defer k.lock.Unlock()
	if h, ok := of.(handed); ok && k.auto {
		h.session.MarkMessage(h.message, "")
	} else if ok && h.session == k.session {
		k.marked.Mark([]*Record{one})
	}
}
