// Writes an invoice for each order. The mistake: it commits the order before it has written the invoice.
package main

import (
	"consumers/events"
	"context"
	"log"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func main() {
	all, mistake := context.Background(), os.Getenv("SERVICE_MISTAKE") == "true"
	told, err := events.Open(os.Getenv("SERVICE_EVENTS"), "consumer", "billing")
	check(err)
	places := func(event string) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(_ context.Context, _ *kgo.Client, topics map[string][]int32) {
			for topic, partitions := range topics {
				for _, partition := range partitions {
					check(told.Write(event, events.F{"topic": topic, "partition": partition}))
				}
			}
		}
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(os.Getenv("BOOTSTRAP_SERVERS"), ",")...),
		kgo.ConsumerGroup("billing"), kgo.ConsumeTopics("orders"), kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(),
		kgo.SessionTimeout(time.Second), kgo.HeartbeatInterval(200*time.Millisecond), kgo.FetchMaxWait(100*time.Millisecond),
		kgo.OnPartitionsAssigned(places("assigned")), kgo.OnPartitionsRevoked(places("revoked")), kgo.OnPartitionsLost(places("lost")))
	check(err)
	commit := func(order *kgo.Record) {
		check(client.CommitRecords(all, order))
		check(told.Write("committed", events.F{"topic": order.Topic, "partition": order.Partition, "offset": order.Offset + 1}))
	}
	for {
		for _, order := range client.PollRecords(all, 1).Records() {
			at := events.F{"topic": order.Topic, "partition": order.Partition, "offset": order.Offset}
			check(told.Write("received", events.F{"topic": order.Topic, "partition": order.Partition, "offset": order.Offset,
				"key": order.Key, "value": order.Value}))
			if mistake {
				commit(order)
			}
			invoice := &kgo.Record{Topic: "invoices", Key: order.Key, Value: append([]byte("invoice for "), order.Value...)}
			check(client.ProduceSync(all, invoice).FirstErr())
			check(told.Write("processed", at))
			if !mistake {
				commit(order)
			}
		}
		client.AllowRebalance()
	}
}
