// The consumer: what was handed out, and its commands.
package main

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
)

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
	k := &consumer{name: name, options: common(name, given), group: given.Group,
		handed: map[string]map[int32]kgo.EpochOffset{}}
	add(&k.options, given.FetchMaxWaitMs, kgo.FetchMaxWait, Ms)
	add(&k.options, given.FetchMinBytes, kgo.FetchMinBytes, func(size int) int32 { return int32(size) })
	add(&k.options, given.FetchMaxBytes, kgo.FetchMaxBytes, func(size int) int32 { return int32(size) })
	if given.Rack != "" {
		k.options = append(k.options, kgo.Rack(given.Rack))
		add(&k.options, given.MetadataMaxAgeMs, kgo.RecheckPreferredReplicaInterval, Ms) // as Java's age does
	}
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
	if stable, ok := given.Extra["RequireStableFetchOffsets"].(bool); !ok || stable {
		k.options = append(k.options, kgo.RequireStableFetchOffsets())
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

func (k *consumer) Poll(c *Command) []*Record {
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
			one := &Record{r.Topic, r.Partition, r.Offset, r.Key, r.Value, [][2]any{},
				r.Timestamp.UnixMilli(), r.LeaderEpoch}
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
		mark(k.handed, one.Topic, one.Partition, kgo.EpochOffset{Epoch: one.LeaderEpoch, Offset: one.Offset +
			1})
	}
	return records
}

var needed = []string{"poll", "pause", "resume", "seek", "commit"}

func (k *consumer) Do(c *Command, done func(Fields, error)) {
	if k.client == nil && slices.Contains(needed, c.Command) {
		done(nil, Refused{"a consumer with a subscription or an assignment", c.Command})
		return
	}
	Read(k, c, done)
}

func (k *consumer) Subscribe(topics []string) (err error) {
	k.client, err = kgo.NewClient(append(k.options, kgo.ConsumeTopics(topics...))...)
	return err
}

func (k *consumer) Assign(of []Place) (err error) {
	where := map[string]map[int32]kgo.Offset{}
	for _, one := range of {
		if where[one.Topic] == nil {
			where[one.Topic] = map[int32]kgo.Offset{}
		}
		where[one.Topic][one.Partition] = kgo.NewOffset().At(one.Offset)
	}
	k.client, err = kgo.NewClient(append(k.options, kgo.ConsumePartitions(where))...)
	return err
}

func (k *consumer) Pause() error {
	k.client.PauseFetchTopics(k.client.GetConsumeTopics()...)
	return nil
}

func (k *consumer) Resume() error {
	k.client.ResumeFetchTopics(k.client.GetConsumeTopics()...)
	return nil
}

func (k *consumer) Seek(to Place) error {
	k.kept = nil
	k.client.SetOffsets(map[string]map[int32]kgo.EpochOffset{to.Topic: {to.Partition: {Epoch: -1,
		Offset: to.Offset}}})
	return nil
}

func (k *consumer) Close() error {
	if k.client != nil {
		k.client.Close()
	}
	return nil
}
