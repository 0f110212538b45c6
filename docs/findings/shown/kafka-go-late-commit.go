// kafka-go commits a record of a partition that its member lost, under the new generation (../kafka-go-late-commit.md).
// fault: observe OffsetCommit
// go run kafka-go-late-commit.go BOOTSTRAP    # of the proxy, or of the broker: nothing fails; needs kafka-go
package main

import (
	"context"
	"fmt"
	"github.com/segmentio/kafka-go"
	"os"
	"time"
)

func main() {
	ctx, topic, to := context.Background(), fmt.Sprint("shown-", time.Now().UnixNano()), kafka.TCP(os.Args[1])
	client := &kafka.Client{Addr: to}
	topics := []kafka.TopicConfig{{Topic: topic, NumPartitions: 2, ReplicationFactor: 1}}
	client.CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: topics})
	time.Sleep(5 * time.Second) // the topic is new
	(&kafka.Writer{Addr: to, Topic: topic}).WriteMessages(ctx, make([]kafka.Message, 10)...)
	config := kafka.ReaderConfig{Brokers: os.Args[1:2], GroupID: topic, Topic: topic, StartOffset: kafka.FirstOffset}
	first, held := kafka.NewReader(config), map[int]kafka.Message{}
	for len(held) < 2 { // at work with a record of each partition
		if m, err := first.FetchMessage(ctx); err == nil && m.Offset == 0 {
			held[m.Partition] = m
		}
	}
	second := kafka.NewReader(config) // joins, and gets one of the two
	m, err := second.FetchMessage(ctx)
	for err != nil || m.Offset < 3 {
		m, err = second.FetchMessage(ctx)
	}
	fmt.Println("partition", m.Partition, "of the second member: it commits", m.Offset+1, second.CommitMessages(ctx, m))
	fmt.Println("the first one commits its record there:", held[m.Partition].Offset+1, first.CommitMessages(ctx, held[m.Partition]))
	said, _ := client.OffsetFetch(ctx, &kafka.OffsetFetchRequest{GroupID: topic, Topics: map[string][]int{topic: {m.Partition}}})
	fmt.Println("committed:", said.Topics[topic][0].CommittedOffset)
	if said.Topics[topic][0].CommittedOffset <= m.Offset {
		os.Exit(10)
	}
}
