// What a consumer commits.
package main

import (
	"context"
	"maps"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func mark(offsets map[string]map[int32]kgo.EpochOffset, topic string, partition int32, at kgo.EpochOffset) {
	if offsets[topic] == nil {
		offsets[topic] = map[int32]kgo.EpochOffset{}
	}
	offsets[topic][partition] = at
}

// asked is what a commit is to commit.
func (k *consumer) asked(c *Command) map[string]map[int32]kgo.EpochOffset {
	offsets := map[string]map[int32]kgo.EpochOffset{}
	if c.Offsets != nil {
		for _, one := range c.Offsets {
			mark(offsets, one.Topic, one.Partition, kgo.EpochOffset{Epoch: -1, Offset: one.Offset})
		}
		return offsets
	}
	k.lock.Lock()
	defer k.lock.Unlock()
	for topic, numbers := range k.handed {
		offsets[topic] = maps.Clone(numbers)
	}
	return offsets
}

// Committed is what the group has.
func (k *consumer) Committed(of []Place) ([]Place, error) {
	said, err := kadm.NewClient(k.client).FetchOffsets(context.Background(), k.group)
	for number, one := range of {
		of[number].Offset = -1
		if found, ok := said.Lookup(one.Topic, one.Partition); ok {
			of[number].Offset = found.At
		}
	}
	return of, err
}

// Commit waits for its answer if the mode is sync.
func (k *consumer) Commit(c *Command, done func(Fields, error)) {
	offsets := k.asked(c)
	finished := make(chan struct{})
	k.client.CommitOffsets(context.Background(), offsets, func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest,
		said *kmsg.OffsetCommitResponse, err error) {
		rows := []Place{}
		if said != nil {
			for _, topic := range said.Topics {
				for _, one := range topic.Partitions {
					if failed := kerr.ErrorForCode(one.ErrorCode); failed != nil && err == nil {
						err = failed
					}
					rows = append(rows,
						Place{topic.Topic, one.Partition, offsets[topic.Topic][one.Partition].Offset})
				}
			}
		}
		done(Fields{"offsets": rows}, err)
		close(finished)
	})
	if c.Mode == "sync" {
		<-finished
	}
}
